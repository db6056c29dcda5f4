"""What can go wrong above the state: settings, input, Kafka. The root is in `state.errors`."""

from state.errors import TextsieveError

__all__ = [
    "BrokerError",
    "InputError",
    "ScopeClosedError",
    "ScopeError",
    "SettingsError",
    "TextsieveError",
    "TopicError",
]


class SettingsError(TextsieveError):
    """A setting is missing, malformed, or contradicts another. The message names it."""


class InputError(TextsieveError):
    """An input file of a command cannot be read. The message names the file and the line."""


class TopicError(TextsieveError):
    """A topic is missing or configured so that a promise could not be kept. The message says the cure."""


class BrokerError(TextsieveError):
    """A broker could not be started, reached, or asked."""


class ScopeError(TextsieveError):
    """A scope cannot go on without losing, doubling or mismatching an event.

    The message names the scope, the positions that disagree, and the command that resolves it.
    """


class ScopeClosedError(ScopeError):
    """The scope was closed, because its partition was revoked or the worker stops. Its next owner goes on."""
