"""From the bytes of an image file to its pixels."""

import io
from typing import TYPE_CHECKING

from suite.errors import ConfigError, SuiteError

if TYPE_CHECKING:
    from PIL.Image import Image


def rgb_image(where: str, content: bytes, failure: type[SuiteError] = ConfigError) -> "Image":
    """An image in red, green and blue, whatever it is stored as.

    Args:
        where: names the image in an error.
        content: of the file.
        failure: raised, as one sentence, where that is no image or half of one.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as image:
            return image.convert("RGB")
    # Beside OSError, which covers unknown and truncated files, decoders let through what they stumble over.
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, Image.DecompressionBombError) as error:
        reason = "unknown format" if isinstance(error, UnidentifiedImageError) else error
        raise failure(f"{where} is no readable image ({reason}); copy it anew") from error
