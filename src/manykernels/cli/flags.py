"""Settings that sentences about tables name, spelled as the flags of this command."""

from manykernels.tables.sentences import Sentence, Setting


def in_flags(text: str) -> str:
    """Return a text with its settings as flags, if it is a sentence that names any.

    Parameters
    ----------
    text : str or Sentence

    Returns
    -------
    text : str

    Examples
    --------
    >>> in_flags(Sentence(Setting("test_size", 0), " holds none out."))
    '--test-size 0 holds none out.'
    """
    return text.spelled(_flag) if isinstance(text, Sentence) else text


def _flag(setting: Setting) -> str:
    flag = f"--{setting.name.replace('_', '-')}"
    return flag if setting.value is None or setting.value is True else f"{flag} {setting.value}"
