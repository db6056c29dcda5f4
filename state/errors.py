"""The errors of textsieve: one root, and beneath it what can go wrong with the state on disk."""


class TextsieveError(Exception):
    """The root of every error that textsieve raises on purpose.

    Its message says what happened, to which topic, partition and offset (or which directory), and what to
    do now; a command prints it and exits with a non-zero code.
    """


class StateError(TextsieveError):
    """Something is wrong with the state of a scope on disk."""


class StateInUseError(StateError):
    """Another process holds the state directory. Stop it, or give this worker a directory of its own."""


class StateCorruptError(StateError):
    """The state on disk cannot be read. Delete the directory: the changelog rebuilds it."""


class StateMismatchError(StateError):
    """The state belongs to something else: another scheme, scope or format.

    State of one scheme is never read under another. Give the new scheme a group of its own, or restore the
    settings that the state was made with.
    """


class ChangelogError(StateError):
    """A changelog record cannot be read, or does not follow from the state that it is applied to."""


class RecordError(ChangelogError):
    """A changelog record cannot be read, whatever state it would be applied to.

    A newer version wrote it, or another program, or it is damaged.
    """
