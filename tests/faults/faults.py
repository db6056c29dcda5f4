"""The faults, each a function that does it to a stage and returns when the stream could move again."""

import signal
from collections.abc import Callable, Mapping

from tests.faults.stage import RunError, Stage

Fault = Callable[[Stage], float | None]
"""Returns the seconds until the next commit where it has waited for that itself."""

FEW = 20
"""Events that show that the stream goes on."""
STOP_SECONDS = 30
"""Within how long a worker must have stopped in order after a signal."""


def kill(stage: Stage) -> None:
    """The worker that holds the scope gets SIGKILL, and is started again."""
    place = stage.active()
    stage.places[place].kill()
    stage.start(place)


def kill_early(stage: Stage) -> None:
    """A worker is killed, and its successor again while it starts."""
    place = stage.active()
    for _ in range(2):
        stage.places[place].kill()
        stage.start(place)
        stage.wait(0, 5)


def stop(stage: Stage) -> None:
    """The worker that holds the scope is told to stop, must do so in order, and is started again."""
    place = stage.active()
    worker = stage.places[place]
    worker.process.send_signal(stage.chance.choice((signal.SIGTERM, signal.SIGINT)))
    if code := worker.process.wait(STOP_SECONDS):
        raise RunError(
            f"The worker at {place} ended with code {code} after a signal:\n{worker.said()[-4000:]}"
        )
    stage.start(place)


def lose_state(stage: Stage) -> None:
    """The worker that holds the scope is killed and its state directory is gone."""
    place = stage.active()
    stage.places[place].kill()
    stage.forget_state(place)
    stage.start(place)


def broker_kill(stage: Stage) -> None:
    """The broker gets SIGKILL and comes back after a moment."""
    stage.broker.kill()
    stage.wait(0, 3)
    stage.broker.start()


def broker_stop(stage: Stage) -> None:
    """The broker is stopped in order and comes back after a moment."""
    stage.broker.stop()
    stage.wait(0, 3)
    stage.broker.start()


def failover(stage: Stage) -> float:
    """The worker that holds the scope is killed, and the other one must go on before another is started."""
    place = stage.active()
    before = stage.committed()
    stage.places.pop(place).kill()
    # It may have judged all there was.
    stage.feed(FEW)
    seconds = stage.until_committed(before + 1)
    stage.start(place)
    return seconds


def zombie(stage: Stage) -> float:
    """The worker that holds the scope is frozen until another one has taken over, then thawed."""
    place = stage.active()
    frozen = stage.places.pop(place)
    known = len(frozen.said())
    with frozen.paused():
        # What it had sent is committed by now, or never.
        before = stage.committed()
        stage.feed(FEW)
        seconds = stage.until_committed(before + 1)
        heir = stage.places[stage.active()]
        already = len(heir.said())
    stage.places[place] = frozen
    frozen.until_said(":0 is closed", known)
    if "Fenced" in heir.said()[already:]:
        raise RunError(f"The worker at {place}, thawed, fenced its heir:\n{heir.said()[already:][-4000:]}")
    return seconds


FAULTS: Mapping[str, Fault] = {
    "kill": kill,
    "kill-early": kill_early,
    "stop": stop,
    "lose-state": lose_state,
    "broker-kill": broker_kill,
    "broker-stop": broker_stop,
    "failover": failover,
    "zombie": zombie,
}
NEED_TWO = {"failover", "zombie"}
