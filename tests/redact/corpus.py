"""Texts whose sensitive parts are known, and texts that only look as if they had some.

`{kind:value}` marks a part. Tokens are drawn with a fixed seed: none of them opens anything.
"""

from __future__ import annotations

import random
import re
import string

_chance = random.Random(20250101)
_MARK = re.compile(r"\{(email|phone|card|iban|secret):([^{}]*)\}")

MIXED = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def drawn(prefix, length, letters=MIXED):
    """A token with a digit, a capital and a small letter in it, where the alphabet has them."""
    body = "".join(_chance.choices(letters, k=length - 3))
    ends = [string.digits, string.ascii_uppercase, string.ascii_lowercase]
    fitting = [[c for c in end if c in letters] or list(letters) for end in ends]
    return prefix + body + "".join(_chance.choice(end) for end in fitting)


def luhn(front):
    """The digits with the check digit that makes them pass."""
    for last in string.digits:
        digits = [int(digit) for digit in reversed(front + last)]
        if sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10 == 0:
            return front + last
    raise AssertionError(front)


def parse(marked):
    """The plain text, and (kind, start, end) of each marked part."""
    plain, labels, last = "", [], 0
    for mark in _MARK.finditer(marked):
        plain += marked[last : mark.start()]
        labels.append((mark[1], len(plain), len(plain) + len(mark[2])))
        plain += mark[2]
        last = mark.end()
    return plain + marked[last:], labels


EMAILS = [
    "Write to {email:john.doe@example.com} before Friday.",
    "Her address is {email:maria_silva88@mail.example.com.br}.",
    "cc {email:a@b.co}, {email:ops+alerts@sub.domain.example.org}",
    "<{email:first.last@example.museum}>",
    'From: "Jane" <{email:jane@example.net}>',
    "mailto:{email:sales@example.de}?subject=Hello",
    "{email:NOREPLY@EXAMPLE.COM} bounced",
    "Moved from {email:old-name@example.io} to {email:new-name@example.io}.",
    "Zoë uses {email:zoë@exämple.de} at home",
    "联系 {email:wang.wei@example.cn}。",
    "({email:x.y-z@foo-bar.example.com})",
    "user {email:12345@163.com} signed up",
    "try {email:me@example.com}, or else",
    "email={email:dev%team@example.com}",
    "Is it {email:bob@example.com}?",
    "{email:tom@example.com}/{email:ann@example.com} share it",
    "Ask {email:support@example.co.uk}; they answer.",
    "the invoice went to {email:accounts.payable@big-company.example.com}\nand nowhere else",
    "{email:o'brien@example.com} is Irish",
    "login {email:a.very.long.mailbox.name.that.goes.on.and.on.and.on.for.longer@example.com}",
    "Contact:{email:hr@example.fr}",
    "*{email:star@example.com}*",
    "[{email:brackets@example.com}](mailto:{email:brackets@example.com})",
    "{email:π@example.gr} is allowed today",
    "Reply-To: {email:list-owner@lists.example.org}",
]

PHONES = [
    "Call me at {phone:202-555-0143}.",
    "My number is {phone:(212) 555-0187} until May.",
    "Office: {phone:+1 415 555 2671}",
    "Tel. {phone:+49 30 901820}",
    "Her cell is {phone:+44 7911 123456}",
    "Ring {phone:020 7946 0958} after five",
    "Handy: {phone:0171 1234567}",
    "WhatsApp {phone:+55 11 91234-5678}",
    "Fixo: {phone:(11) 3123-4567}",
    "phone {phone:2125550187}",
    "mobile: {phone:6502530000}",
    "They moved, dial {phone:1-800-356-9377} now",
    "{phone:+33 1 42 68 53 00} is the Paris desk",
    "{phone:+81 3-5321-1111} in Tokyo",
    "{phone:+86 10 6552 9988} in Beijing",
    "{phone:+91 98765 43210} in Delhi",
    "{phone:+61 2 9374 4000} in Sydney",
    "fax {phone:+41 44 668 18 00}",
    "text me on {phone:(650) 253-0000}!",
    "Either {phone:202-555-0143} or {phone:+1-202-555-0144}.",
    "call {phone:+14155552671}",
    "Bitte {phone:030 901820} anrufen",
    "Her phone number is {phone:415 555 2671}",
    "the London line, {phone:020 7946 0018}, is down",
    "{phone:(415) 555-2671} x12",
    "tel:{phone:+4930901820}",
    "{phone:+353 1 436 1000} (Dublin)",
    "{phone:+39 06 698 12345} (Rome)",
    "{phone:+7 495 739-70-00} (Moscow)",
    "Anna hat {phone:+43 1 514440} genannt",
]

CARDS = [
    "Paid with {card:4111 1111 1111 1111}.",
    "card {card:4111111111111111} expires 12/27",
    "{card:5555-5555-5555-4444} was declined",
    "Amex {card:3782 822463 10005}",
    "Amex {card:378282246310005}",
    "{card:6011 1111 1111 1117} (Discover)",
    "{card:3530 1113 3330 0000} (JCB)",
    "{card:3056 930902 5904} (Diners)",
    "{card:2223 0031 2200 3222} (Mastercard, new range)",
    "use {card:5105105105105100}, please",
    "number={card:4012888888881881};cvv=123",
    "cards: {card:4000 0566 5566 5556} and {card:5200 8282 8282 8210}",
    "UnionPay {card:6200 0000 0000 0005}",
    "Visa ends 1881 in full {card:4012-8888-8888-1881}",
    *(f"charge {{card:{luhn(front)}}} twice" for front in ("455673758689985", "453201511283036")),
    *(f"refund to {{card:{luhn(front)}}}" for front in ("542523343010990", "510510510510511")),
    *(f"AMEX {{card:{luhn(front)}}} is mine" for front in ("37449635398431", "34111111111111")),
]

IBANS = [
    "Transfer to {iban:DE89 3704 0044 0532 0130 00}.",
    "IBAN {iban:DE89370400440532013000}",
    "{iban:GB29 NWBK 6016 1331 9268 19} is hers",
    "{iban:FR14 2004 1010 0505 0001 3M02 606} and card",
    "{iban:NL91 ABNA 0417 1643 00}",
    "{iban:ES91 2100 0418 4502 0005 1332}",
    "{iban:IT60 X054 2811 1010 0000 0123 456}",
    "{iban:CH93 0076 2011 6238 5295 7}",
    "{iban:AT61 1904 3002 3457 3201} AND THEN",
    "{iban:BE68 5390 0754 7034}",
    "{iban:PL61 1090 1014 0000 0712 1981 2874}",
    "{iban:BR15 0000 0000 0000 1093 2840 814P 2}",
    "{iban:SE45 5000 0000 0583 9825 7466}",
    "{iban:NO93 8601 1117 947}",
    "iban={iban:de89370400440532013000}",
    "{iban:PT50 0002 0123 1234 5678 9015 4}",
    "{iban:MT84 MALT 0110 0001 2345 MTLC AST0 01S}",
    "rent goes to {iban:LU28 0019 4006 4475 0000} monthly",
    "{iban:DK50-0040-0440-1162-43}",
    "{iban:SA03 8000 0000 6080 1016 7519}",
]

PRIVATE_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(drawn("", 64, MIXED + "+/") for _ in range(6))
    + "\n-----END RSA PRIVATE KEY-----"
)

SECRETS = [
    f"the key is {{secret:{drawn('AKIA', 16, string.ascii_uppercase + string.digits)}}}",
    f"export GITHUB={{secret:{drawn('ghp_', 36)}}}",
    f"token {{secret:{drawn('gho_', 36)}}} is revoked",
    f"{{secret:{drawn('github_pat_', 60)}}}",
    f"push with {{secret:{drawn('glpat-', 20)}}}",
    f"slack {{secret:xoxb-{drawn('', 12, string.digits)}-{drawn('', 24)}}}",
    f"https://example.com/{{secret:{drawn('sk_live_', 24)}}}",
    f"https://example.com/files/{{secret:{drawn('', 43, MIXED)}}}",
    f"base64 {{secret:{drawn('', 44, MIXED + '+/')}=}} is the master",
    f"stripe {{secret:{drawn('sk_test_', 24)}}}",
    f"OPENAI {{secret:{drawn('sk-', 48)}}}",
    f"{{secret:{drawn('sk-proj-', 60, MIXED + '_-')}}} works",
    f"anthropic: {{secret:{drawn('sk-ant-api03-', 80, MIXED + '_-')}}}",
    f"hf login {{secret:{drawn('hf_', 34, string.ascii_letters + string.digits)}}}",
    f"maps {{secret:{drawn('AIza', 35, MIXED)}}}",
    f"npm {{secret:{drawn('npm_', 36)}}}",
    f"{{secret:{drawn('SG.', 22)}.{drawn('', 43)}}} sends mail",
    f"bot {{secret:{drawn('', 9, string.digits)}:{drawn('AA', 33)}}}",
    f"{{secret:{drawn('AC', 32, HEX)}}} is the twilio id",
    "jwt {secret:eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc_DEF-123456789} expired",
    f"Authorization: Bearer {{secret:{drawn('', 40, MIXED)}}}",
    f"Authorization: Basic {{secret:{drawn('', 24, MIXED)}==}}",
    "postgres://admin:{secret:s3cr3t!pass}@db.example.com:5432/app",
    "https://bob:{secret:hunter22}@example.com/path",
    "redis://:{secret:pa55word}@cache:6379/0",
    "password: {secret:hunter2}",
    "Password = {secret:correct.horse.9}",
    "my password is {secret:Tr0ub4dor&3}, do not tell",
    'password = "{secret:correct horse battery}"',
    "DB_PASSWORD={secret:letmein}",
    '"password": "{secret:qwerty}"',
    "passwd:{secret:abc123!}",
    "The passphrase is '{secret:open sesame now}'.",
    f"api_key = {{secret:{drawn('', 20)}}}",
    f"API key: {{secret:{drawn('', 32, HEX)}}}",
    f"client_secret: '{{secret:{drawn('', 30)}}}'",
    f"secret={{secret:{drawn('', 16)}}}",
    f"scope=all&access_token={{secret:{drawn('', 30)}}}",
    f"auth-token => {{secret:{drawn('', 24)}}}",
    f"aws_secret_access_key = {{secret:{drawn('', 40, MIXED + '+/')}}}",
    f"found {{secret:{drawn('', 40)}}} in the logs",
    f"and {{secret:{drawn('', 64)}}} too",
    "a note\n{secret:" + PRIVATE_KEY + "}\nand more",
    "{secret:" + PRIVATE_KEY.replace("RSA", "OPENSSH") + "}",
    '"key": "{secret:' + PRIVATE_KEY.replace("\n", "\\n") + '}"',
    "Passwort: {secret:Geheim1!}",
    "the password was changed to {secret:Winter2024!}, says Ann",
    "The passcode is now {secret:x9-4471} there",
    "user: bob, pass: {secret:abc12345}",
    "senha: {secret:segredo9}",
    "contraseña={secret:hola1234}",
    "pwd={secret:s3same}",
    "wifi password: {secret:blue-horse-42}",
    "The password of the router is {secret:Xk29-hunter2}.",
    "password for the guest wifi: {secret:abc12345}",
    "The password for my bank's site was changed to {secret:hunter22}, she says",
    "The passphrase to Ann's old laptop is '{secret:open sesame}'",
    f"whsec {{secret:{drawn('whsec_', 32)}}}",
    f"{{secret:https://hooks.slack.com/services/T{drawn('', 9)}/B{drawn('', 9)}/{drawn('', 24)}}}",
]

MIXES = [
    "Bob ({email:bob@example.com}, {phone:+1 415 555 2671}) pays with {card:4111 1111 1111 1111}.",
    "{email:a@example.com} {iban:DE89 3704 0044 0532 0130 00} {phone:+49 30 901820}",
    "login {email:joe@example.com} password: {secret:hunter2}",
    "https://me:{secret:p4ss}@example.com and call {phone:(212) 555-0187}",
]

LOOK_ALIKES = [
    "Order 4471229018 shipped.",
    "Order number 2025550143 was cancelled",
    "order #202-555-0143 is late",
    "Invoice 2024-000123-77 is due",
    "Ticket INC0012345678",
    "PO 100-200-300",
    "tracking 1Z999AA10123456784",
    "tracking 9400 1000 0000 0000 0000 00",
    "SKU 123-456-789",
    "case 12-34567-89",
    "on 2024-03-15 at 14:30",
    "from 2023-01-01 to 2023-12-31",
    "15.03.2024 09:15",
    "03/15/2024 and 04/16/2024",
    "20240315143000",
    "2024-03-15T14:30:00Z",
    "at 1710513000 seconds",
    "at 1710513000123 milliseconds",
    "ISBN 978-3-16-148410-0",
    "ISBN 9783161484100",
    "ISBN 0-306-40615-2",
    "ISSN 2049-3630",
    "DOI 10.1000/182.1234567",
    "arXiv:2401.01234",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "id 123e4567-e89b-12d3-a456-426614174000 was updated",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "merged 3f786850e387550fdab836ed7e6dc881de23001b into main",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "version 1.2.3",
    "version 2024.10.01.1",
    "upgrade to v10.15.7-beta.2",
    "python 3.11.7 on linux 5.15.0-101",
    "It cost $1,234.56",
    "EUR 12.345.678,90",
    "1,000,000,000 people",
    "population 8 045 311 447",
    "R$ 1.234,56",
    "at 09:30, 10:15 and 23:59:59",
    "52.520008, 13.404954",
    "lat -33.868820, lon 151.209290",
    "40.7128 N 74.0060 W",
    "pi is 3.14159265358979",
    "0.12345678901234567890",
    "1e-10 and 6.02214076e23",
    "@alice replied to @bob",
    "@alice@mastodon.social posted",
    "alice@home has no dot",
    "root@localhost",
    "git@github.com:acme/widgets.git",
    "react@18.2.0 and lodash@4.17.21",
    "logo@2x.png is blurry",
    "npm i left-pad@v1.3.0",
    "meet @ 5.pm",
    "IBAN DE88 3704 0044 0532 0130 00",
    "GB28 NWBK 6016 1331 9268 19",
    "FR13 2004 1010 0505 0001 3M02 606",
    "NL90ABNA0417164300",
    "AB12 3456 7890 1234",
    "part DE12 3456",
    "4111 1111 1111 1112",
    "5555 5555 5555 4443",
    "378282246310006",
    "card ending in 1881",
    "1234 5678 9012 3456",
    "0000 0000 0000 0000",
    "IMEI 490154203237518",
    "IMEI 356938035643809",
    "EAN 4006381333931",
    "the password is required",
    "Password: required",
    "reset your password, please",
    "the password policy is strict",
    "The password for the portal is case-sensitive.",
    "The password of the old router is on-site, in the safe",
    "a pass for the museum is 25.50€",
    "the token for the build is v1.2.34",
    "The password for the club is changed every 30 days.",
    "password: must be long",
    "He forgot the password again",
    "the password was changed yesterday",
    "the token is now valid",
    "the password was changed to something longer",
    "pass: the salt, please",
    "we pass 3 towns",
    "the secret is out",
    "a secret: they married",
    "the secret is patience",
    "token: the smallest unit of text",
    "tokens: 4096",
    "max_tokens=4096",
    "a token is about four letters",
    "the api key is missing",
    "api key: none",
    "bearer of bad news for everyone",
    "basic understanding1 of physics",
    "a basic-understanding-of-everything",
    "task-management-for-small-teams",
    "scikit-learn-intelligence-extension-2023",
    "https://example.com/how-to-install-python3-on-windows-10-and-ubuntu",
    "https://example.com:8080/path?page=2",
    "/home/user/projects/LanceMemory/tests/store/test_many_things_2024.py",
    "AbstractSingletonProxyFactoryBeanConfigurationProvider",
    "org/apache/hadoop/hbase/regionserver/TestHRegionServerBulkLoad2WithOldClient11",
    "XMLHttpRequest2EventTargetOnLoadStartHandlerV11",
    "IPv6AndIPv4DualStackHttp2TLS13ServerConfigTest",
    "com.example.application.configuration.DatabaseConnectionPool",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOP",
    "0123456789012345678901234567890123456789",
    "the file data_2023_final_v2_reviewed_by_team_A1.csv",
    "192.168.10.123 answered",
    "10.0.0.1:8080",
    "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    "00:1A:2B:3C:4D:5E",
    "score 3-2, 21-15, 15-21, 11-9",
    "pages 123-145, 200-210",
    "1990-2024",
    "SSN-like 12-345",
    "Route 66, exit 12, mile 1234567",
    "room 4711, floor 12",
    "ZIP 90210-1234",
    "10115 Berlin, 20095 Hamburg",
    "5 x 4 x 3 = 60",
    "1 2 3 4 5 6 7 8 9 10 11 12",
    "lottery: 04 11 19 27 33 42",
    "chess: 1. e4 e5 2. Nf3 Nc6",
    "the ratio is 16:9, or 1.777777",
    "[email] and [phone] were removed before",
    "password: [secret]",
]

POSITIVE = [*EMAILS, *PHONES, *CARDS, *IBANS, *SECRETS, *MIXES]
