"""Run benchmarks, one after another, and write docs/performance.md from what they and earlier ones found.

Run: python -m bench [--data DIRECTORY] [name ...]
"""

import argparse
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from bench.report import ORDER, write
from bench.results import Options


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition("\n")[0])
    beside = os.environ.get("TEXTSIEVE_DATA", Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=beside, help="directory of the real texts")
    parser.add_argument("--page", type=Path, default=Path("docs/performance.md"), help="the page to write")
    parser.add_argument("--millions", type=int, default=10, help="million live originals, at most")
    parser.add_argument("name", nargs="*", choices=[*ORDER, []], help="which; all where none is named")
    arguments = parser.parse_args()
    data = arguments.data.resolve()
    if len(arguments.name) == 1:
        import_module(f"bench.{arguments.name[0]}").main(Options(data, arguments.millions))
    else:
        # Each in a process of its own: what one leaves in memory must not weigh on the next.
        for name in arguments.name or ORDER:
            print(f"-- {name}", flush=True)
            command = [sys.executable, "-m", "bench", "--data", str(data), "--page", str(arguments.page)]
            command += ["--millions", str(arguments.millions)]
            subprocess.run([*command, name], check=True)
    write(arguments.page)
    print(f"Written: {arguments.page}")


if __name__ == "__main__":
    main()
