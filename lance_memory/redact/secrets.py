"""Keys, tokens and passwords; the only module that knows detect-secrets.

Of that library the vendors' patterns and the measure of randomness are used. Its own scan is for
lines of source: it gives values without positions, and unquoted passwords not at all. Detectors
whose patterns take more than linear time, or match ordinary words or names, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from lance_memory.extras import require

__all__ = ["secrets"]

_DETECTORS: Final = {
    "azure_storage_key": "AzureStorageKeyDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "mailchimp": "MailchimpDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}

_TOKEN: Final = re.compile(
    r"(?<![\w-])(?:"
    r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"  # AWS
    r"|sk-[\w-]{20,}"  # OpenAI, Anthropic
    r"|github_pat_\w{22,}|npm_\w{36}|hf_\w{30,}|gsk_\w{30,}|xai-\w{30,}"
    r"|AIza[\w-]{35}|GOCSPX-[\w-]{28}"  # Google
    r"|[rs]k_(?:live|test)_\w{10,}|whsec_\w{16,}"  # Stripe
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"  # a JSON web token
    r")"
)

_KEY_BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN)[\s\S])*?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:[\s\\]|[A-Za-z0-9+/=]{16,})*)"  # cut off before its end
)

_IN_URL: Final = re.compile(r"://[^\s/?#@:\[\]]*:([^\s/?#@]+)@")

_AUTHORIZATION: Final = re.compile(
    r"\b(?:bearer|basic)[ \t]{1,4}(?=[\w.~+/-]{0,200}\d)([\w.~+/-]{16,}={0,2})", re.IGNORECASE
)

_ASSIGNED: Final = re.compile(
    r"""
    (?<![^\W_])
    (?:(?:pass(?:word|wd|phrase|code)|pwd|passwort|kennwort|senha|contrase(?:ñ|n)a|mot\ de\ passe
        |(?<![^\W_])(?:wi-?fi|login|admin|root)\ pw)
        (?P<whose>[ ](?:of|for|to)(?:[ ][\w.'-]{1,30}){1,4}?)?
      |pass
      |(?:api|auth|access|service|account|private|client|master|signing)[_ -]?(?:key|token)
      |(?:client|api|app|shared|auth|consumer)?[_ -]?secret(?:[_ -](?:access[_ -])?key|[_ -]token)?
      |(?:api|auth|access|refresh|bearer|bot|session)?[_ -]?token)
    ["']?[ \t]{0,4}
    (?P<sign>:=|=>|={1,3}|:
      |\b(?:(?:(?:is|was)[ ])?(?:changed|reset|set)[ ]to|(?:is|was)(?:[ ]now)?
        |ist|lautet|é|es|est)\b:?)[ \t]{0,4}
    (?:(?P<quote>["'`])(?P<quoted>[^"'`\n]{1,300})(?P=quote)|(?P<plain>[^\s"'`,;]{1,300}))
    """,
    re.IGNORECASE | re.VERBOSE,
)

_BESIDE: Final = re.compile(
    r"(?<![^\W_])(?:pass(?:word|phrase|code)|passwort|pwd)[ \t]{1,4}"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,300})(?P=quote)"
    r"|(?P<plain>(?=[^\s\"'`,;]{0,60}[A-Za-z])(?=[^\s\"'`,;\d]{0,60}\d[^\s\"'`,;\d]{0,60}\d)"
    r"[^\s\"'`,;]{8,64})(?![^\s,;.]))",
    re.IGNORECASE,
)
"""A password straight after the word: in quotes, or with letters and two digits."""

_PIN: Final = re.compile(
    r"(?<![^\W_])pin(?:[ -](?:code|number))?[ ]?(?::|=|\bis\b:?)[ ]{0,2}(\d{4,8})(?![\w.,:/-]*\d)",
    re.IGNORECASE,
)

_CODE: Final = re.compile(
    r"(?:none|null|nil|true|false|undefined)\W*$"
    r"|[a-z_]\w*(?:\.\w+)*[(\[]"
    r"|(?:process\.env|os\.environ|import\.meta|self|this|config|settings)\."
    r"|\$[{(\w]",
    re.IGNORECASE,
)
"""How source code begins that gets a secret from elsewhere."""

_RANDOM: Final = (
    re.compile(r"(?<![\w-])[A-Za-z0-9_-]{32,256}(?![\w=-])"),
    re.compile(r"(?<![\w+/.-])[A-Za-z0-9+/]{32,256}={0,2}(?![\w+/=-])"),
)
"""Base64 for URLs, and the other one, which may look like a path. What is longer is data."""

_RANDOM_BITS: Final = 4.0
"""Entropy, bits a character; 32 letters and digits drawn by chance have 4.1 to 4.9."""

_RANDOM_CHANGES: Final = 0.36
"""Words, capitals and numbers that a run is made of, a character. Measured: 97 % of tokens of
32 letters and digits have more, and of 24,382 long names in source code only 23, all tokens."""

_REST: Final = re.compile(r"[\w-]*")


def secrets(text: str) -> Iterator[tuple[int, int]]:
    """Spans of secrets; they may overlap."""
    for pattern in _vendors():
        yield from _tokens(pattern, text)
    for match in _TOKEN.finditer(text):
        if re.search(r"\d", match.group()):
            yield match.span()
    yield from (match.span() for match in _KEY_BLOCK.finditer(text))
    yield from (match.span(1) for match in _IN_URL.finditer(text))
    yield from (match.span(1) for match in _AUTHORIZATION.finditer(text))
    yield from (match.span(1) for match in _PIN.finditer(text))
    for match in _BESIDE.finditer(text):
        yield match.span("quoted" if match["quote"] else "plain")
    yield from _assigned(text)
    for pattern in _RANDOM:
        yield from (match.span() for match in pattern.finditer(text) if _random(match.group()))


def _tokens(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Each match to the end of its word: a vendor may make its tokens longer."""
    at = 0
    while match := pattern.search(text, at):
        at = max(match.end(), at + 1)
        if rest := _REST.match(text, at):
            at = rest.end()
        yield match.start(), at


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    for match in _ASSIGNED.finditer(text):
        group = "quoted" if match["quote"] else "plain"
        value = match[group].rstrip(".)]}>") if group == "plain" else match[group]
        quoted = group == "quoted"
        told = quoted or not match["whose"] or re.search(r"\d", value)
        if told and _telling(value, sign=match["sign"], quoted=quoted):
            yield match.start(group), match.start(group) + len(value)


def _telling(value: str, *, sign: str, quoted: bool) -> bool:
    """Whether a value after "password:" is one: prose has words of letters there."""
    if not quoted and (_CODE.match(value) or (sign == "==" and value[:1].isalpha())):
        return False
    mixed = not value.isalpha()
    if sign[0].isalpha():  # "is", "was changed to"
        return len(value) >= 5 and (quoted or mixed)
    return len(value) >= 4 and (quoted or mixed or "=" in sign)


def _random(run: str) -> bool:
    """Whether a run looks drawn by chance, judged by its longest piece."""
    piece = max(re.split(r"[/_+-]", run.rstrip("=")), key=len)
    mixed = all(sum(map(of, piece)) >= 2 for of in (str.isdigit, str.isupper, str.islower))
    changes = len(re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", piece)) / len(piece) if mixed else 0.0
    return len(piece) >= 16 and changes > _RANDOM_CHANGES and _bits()(run) > _RANDOM_BITS


@cache
def _vendors() -> tuple[re.Pattern[str], ...]:
    found: list[re.Pattern[str]] = []
    for module, name in _DETECTORS.items():
        found += getattr(require(f"detect_secrets.plugins.{module}"), name).denylist
    return tuple(found)


@cache
def _bits() -> Callable[[str], float]:
    plugins: Any = require("detect_secrets.plugins.high_entropy_strings")
    measure: Callable[[str], float] = plugins.Base64HighEntropyString().calculate_shannon_entropy
    return measure
