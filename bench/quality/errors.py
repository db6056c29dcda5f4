"""What can go wrong while quality is measured."""

from state.errors import TextsieveError

__all__ = ["QualityError"]


class QualityError(TextsieveError):
    """The measurement cannot be made, or could not be trusted; the message says what to do."""
