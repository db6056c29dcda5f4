"""A server run as a child process that never outlives its parent."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 30.0
"""How long a server may take over an orderly stop before it is killed. Apache Kafka takes 0.3 s when idle."""

# The read ends when the parent is gone, by whatever death: only the parent holds the other end of the pipe.
# Not PR_SET_PDEATHSIG: Linux alone has it, and it fires when the *thread* that started the child ends, which
# may be one of a pool (asyncio.to_thread). The minus names the child's process group: should the number have
# gone to another process in the meantime, it hardly names a group, and nothing innocent is hit.
_WATCHDOG = 'read -r _; kill -9 "-$0"'


class ChildProcess:
    """A running server: ended by `stop`, by `kill`, or by the death of this process (even by SIGKILL).

    The server gets a session of its own, so a Ctrl-C in the terminal reaches the parent alone, which can
    finish with the server before it stops it.

    Args:
        command: the program and its arguments.
        directory: its working directory.
        log: the file to which its standard output and standard error are appended.
        environment: its environment; this process's where absent.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        with log.open("ab") as out:
            self._server = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._watchdog = subprocess.Popen(  # noqa: S603 - a constant script, and a number
                ["/bin/sh", "-c", _WATCHDOG, str(self._server.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:  # a Ctrl-C just here, too
            self._server.kill()
            self._server.wait()
            raise

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._server.pid

    @property
    def exit_code(self) -> int | None:
        """None while the server runs; afterwards its exit code, negative where a signal ended it."""
        return self._server.poll()

    def wait(self) -> int:
        """Block until the server has ended by itself, and return its exit code."""
        return self._server.wait()

    def stop(self) -> None:
        """Ask the server to stop (SIGTERM), and return when it has; kill it after `STOP_SECONDS`."""
        self._server.send_signal(signal.SIGTERM)
        try:
            self._server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
        self._reap()

    def kill(self) -> None:
        """End the server without warning (SIGKILL), and return when it is gone."""
        self._server.kill()
        self._reap()

    def _reap(self) -> None:
        self._server.wait()
        self._watchdog.kill()
        self._watchdog.communicate()  # closes the pipe
