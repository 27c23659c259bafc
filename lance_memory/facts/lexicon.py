"""Closed lists of words that the rules about facts know. Folded: lower case, no accents."""

from __future__ import annotations

__all__ = ["COMMON", "DENIALS", "ENDED", "NEGATIONS", "OPPOSITES", "PERSON", "PLACES", "UNITS"]

COMMON = frozenset(
    """
    about above accept access according account add address after afternoon age ago agent ahead
    alert all allow almost alone along already alternatively although always among any anyone
    anything apartment api app appointment around arrive ask assistant avoid away back backup
    bad base based because become before begin believe below besides best better between big
    bill birthday book both bought bring brother build bug business buy call called came cannot
    car card care case cash cat change check child children city class clean client close code
    colleague come comes company conference consider contact contract cook cost costs could
    count country course create customer customers daily database date daughter day days
    deadline dear decided decision default delete delivery deploy deploys deployment despite did
    dinner dislikes do doctor does dog done door down due during each early easy eat eats either
    else email employee employees enable end enjoys enough error even evening ever every
    everyone everything exercise expects family fast father favorite favourite feature feels few
    file final finally find finds fix flat flight floor food for forget form found free friend
    friends full further game gave gets gives given goes going good got great group grew guest
    gym half happy has hates have having head health hello help here high his hobby home hope
    hospital hotel hours house however husband idea if instead interested interview invoice
    issue job join joined just keep keeps kids kind knows language large last late later learn
    learning least leave leaves left less let letter library license life like liked likes limit
    live lived lives living local login logs long look looking looks love loved loves low lunch
    made mail make makes manager many market may maybe mean means meet meeting meetings member
    memory message met might mine model money month monthly months more morning most mother move
    moved movie much music must name named near need needed needs neither new news next nice
    night nobody nor notes nothing now number office often ok okay old once online only open
    order orders other others own owns paid parents part parking party pass password past pay
    payment people per perhaps person phone place plan planned plans play player plays please
    policy possible prefer preferred prefers price prices problem process product production
    profile project provide put quality question quick quite rather read reads reason recently
    release remember reminder rent report request requested requires restaurant return returned
    reviews room run runs running said salary same saw says schedule school season see seems
    sees sell send sent server service session set several share shift ship shipped shipping
    shop short should show shows sign since sister sits size sleep sleeps small social someone
    something sometimes son soon speaks spent sport spring staff standup start started starts
    state status stay stayed still stop stopped store street student students studied studies
    study studying subscription such suggested summer support swims system take takes talk
    talked talks task tasks tea teacher team teaches test tests text thank thanks thinks though
    through thus ticket time title today together told tomorrow tonight took total toward
    tracking train training travel travels tries trip turn turned ultimately under university
    unless until update updated upgrade uses use used user users using usually vacation
    vegetarian version very via visit visited visits wait waiting walk walks wake wakes want
    wanted wants was watch watched watches water way wear wears weather wedding week weekly
    weekend weeks well went were whatever whenever where whether while whoever whole whose why
    wife window winter within without won wonder word words work worked worker works working
    would wrote year yearly years yesterday yet young
    a o os as um uma ele ela elas eu tu nos voces minha seu sua este esta isso aqui ali
    como quando onde quem que por para com sem todos todas cada hoje ontem amanha depois antes
    reuniao voo utilizador usuario gosta mora vive trabalha tem esta sao foi
    """.split()  # noqa: SIM905 (a list of words reads better as text)
)
"""Words that begin a sentence with a capital and are no names."""

PLACES = (
    *(
        "北京",
        "上海",
        "广州",
        "深圳",
        "杭州",
        "南京",
        "成都",
        "重庆",
        "武汉",
        "西安",
        "天津",
        "苏州",
    ),
    *("香港", "台北", "东京", "大阪", "首尔", "新加坡", "巴黎", "伦敦", "柏林", "罗马", "纽约"),
    *("中国", "日本", "韩国", "美国", "英国", "法国", "德国", "意大利", "西班牙", "葡萄牙", "巴西"),
)
"""Names that a script without capitals would hide."""

_SURNAMES = (
    "小老阿王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋"
    "蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔崔康毛邱秦顾侯邵孟龙段汤尹黎常武乔贺"
)
_AFTER_A_PERSON = "是在的和跟与住喜讨爱说来去有会不没从也要想买卖做叫现已就正今昨每刚，。"
PERSON = (
    rf"(?:^|(?<=[，。；、和跟与叫是给找让]))([{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)"
    rf"(?=[{_AFTER_A_PERSON}]|$)"
)
"""Chinese names of people: a common surname, or 小 and the like, where a name may stand."""

NEGATIONS = (
    r"not|no|never|none|nothing|nobody|neither|nor|without|cannot|.+n['’]t"
    r"|(?:ai|are|ca|could|did|do|does|had|has|have|is|might|must|need|should|was|were|wo|would)nt"
    r"|não|nunca|jamais|sem|nem|pas|kein(?:e[mnrs]?)?|nichts?|nie|niemals|не|нет|никогда"
    r"|不|没|無|无"
)
"""Words that deny, accents and all. Notes have contractions without the apostrophe as often as with
it; the two of them that are words of their own hardly anyone uses."""

DENIALS = (
    r"hardly|barely|scarcely|rarely|seldom|unable|impossible|lack(?:s|ed|ing)?|avoid(?:s|ed|ing)?"
    r"|(?:failed|fails?|refused?|refuses) to"
)
"""Denials without a "not"."""

_USED_TO = "".join(
    rf"(?<!\b{word} used to)"
    for word in "am is are was were be been being get gets got 'm 's 're".split()  # noqa: SIM905
)
ENDED = (
    r"stop(?:s|ped|ping)?|quit(?:s|ting)?|ceas(?:e|es|ed|ing)|deix(?:ou|ei) de|par(?:ou|ei) de"
    rf"|formerly|used to{_USED_TO}"
)
"""Who stopped something, or used to do it, does it no longer; one who is used to it may."""

OPPOSITES = {
    "taste": {
        "for": "likes?|liked|loves?|loved|enjoys?|enjoyed|gosta|adora|喜欢|喜爱",
        "against": "hates?|hated|dislikes?|disliked|detests?|odeia|detesta|讨厌",
    },
    "order": {"before": "before|antes|之前", "after": "after|depois|之后"},
    "switch": {
        "on": r"enabl(?:e|es|ed|ing)|activat(?:e|es|ed|ing)|(?:turn|switch)\w* (?:\w+ )?on",
        "off": r"disable\w*|disabling|deactivat\w+|(?:turn|switch)\w* (?:\w+ )?off",
    },
    "trend": {
        "up": r"increase\w*|increasing|rais\w+|ris(?:e|en|es|ing)|rose|gr[eo]w(?:s|n|ing)?"
        r"|aument\w+|增加",
        "down": r"decrease\w*|decreasing|reduc\w+|lower(?:s|ed|ing)|f[ae]ll(?:s|en|ing)?|dimin\w+"
        "|减少",
    },
    "hand": {"left": "left|esquerda|左", "right": "right|direita|右"},
    "daytime": {
        "morning": "mornings?|manha|早上|早晨|上午",
        "afternoon": "afternoons?|tarde|下午",
        "evening": "evenings?|tonight|晚上",
        "night": "nights?|nightly|noite|夜里",
    },
    "worth": {"good": "good", "bad": "bad"},
    "marriage": {
        "married": "married",
        "divorced": "divorced",
        "widowed": "widowed",
        "single": r"single(?<!\ba single)(?<!every single)",
    },
    "workday": {"in": "weekdays?|workdays?", "off": "weekends?"},
    "diet": {"vegan": "vegans?", "vegetarian": "vegetarians?"},
    "belief": {"sure": "know|knows|knew|believe[sd]?", "unsure": "doubt(?:s|ed)?"},
    "life": {"alive": "alive", "dead": "dead|died|deceased|passed away"},
    "gate": {"open": "open(?:s|ed)?|aberto|aberta", "shut": "closed?|shut|fechado|fechada"},
    "trade": {"buys": "buys?|bought|buying|compr(?:a|ou)", "sells": "sells?|sold|selling|vendeu?"},
    "passage": {
        "out": "leaves?|departs?|departed|departure|parte|出发",
        "in": "arrives?|arrived|arrival|chega|到达",
    },
    "begun": {"start": "starts?|started|begins?|began|开始", "end": r"ends?|ended|finish\w*|结束"},
    "verdict": {
        "yes": r"accept(?:s|ed)?|approv\w+|allow(?:s|ed)?|permit\w*",
        "no": r"reject(?:s|ed)?|refus\w+|forbid\w*|den(?:y|ies|ied)|block(?:s|ed)?",
    },
    "outcome": {
        "good": r"succeed\w*|success\w*|pass(?:es|ed)?|w[io]ns?",
        "bad": r"fail\w*|los(?:e|es|t)",
    },
    "height": {"above": "above|over|upstairs", "below": "below|under|downstairs"},
    "bound": {"least": "at least|minimum", "most": "at most|maximum"},
    "stage": {"production": "production|prod", "staging": "staging"},
    "colour": {
        name: name for name in ("red", "blue", "green", "yellow", "black", "white", "brown")
    },
    "span": {
        "minute": "minutes?|minutos?|分钟",
        "hour": "hours?|hourly|horas?|小时",
        "day": "days?|daily|dias?|每天|每日",
        "week": "weeks?|weekly|semanas?|每周|星期",
        "month": "months?|monthly|mes|meses|每月|个月",
        "year": "years?|yearly|annual|annually|anos?|每年|年",
    },
    "currency": {
        "euro": "euros?|eur|€|欧元",
        "dollar": r"dollars?|usd|\$|美元",
        "pound": "gbp|£|英镑",
        "yuan": "yuan|cny|rmb|元|块",
    },
    "length": {
        "km": "km|kilomet(?:er|re)s?|公里",
        "mile": "miles?",
        "metre": "met(?:er|re)s?|米",
        "foot": "feet|foot|ft",
    },
    "kin": {
        "mother": "mother|mom|mum|mae|妈妈",
        "father": "father|dad|pai|爸爸",
        "sister": "sisters?|irma|姐姐|妹妹",
        "brother": "brothers?|irmao|哥哥|弟弟",
        "wife": "wife|妻子",
        "husband": "husband|marido|丈夫",
        "son": "sons?|儿子",
        "daughter": "daughters?|女儿",
        "uncle": "uncle|tio",
        "aunt": "aunt|tia",
        "grandmother": "grandmother|grandma",
        "grandfather": "grandfather|grandpa",
    },
}
"""The most common opposites, and words of which only one holds: family → side → its forms, regular
expressions. No list is complete; what is not in here is told apart by the vectors alone."""

UNITS = {
    "mcg": "mcg|[µμ]g|micrograms?",
    "mg": "mg|milligram(?:me)?s?",
    "kg": "kg|kgs|kilos?|kilogram(?:me)?s?|公斤|千克",
    "g": "g|gram(?:me)?s?|克",
    "tonne": "t|tons?|tonnes?|吨",
    "lb": "lbs?|pounds?",
    "oz": "oz|ounces?",
    "ml": "ml|millilit(?:er|re)s?|毫升",
    "cl": "cl",
    "litre": "l|lit(?:er|re)s?|litros?|升",
    "gallon": "gallons?",
    "pint": "pints?",
    "cup": "cups?",
    "teaspoon": "tsp|teaspoons?",
    "tablespoon": "tbsp|tablespoons?",
    "kmh": "km/h|kmh|kph",
    "mph": "mph",
    "mm": "mm|millimet(?:er|re)s?|毫米",
    "cm": "cm|centimet(?:er|re)s?|厘米",
    "km": "km|kms|kilomet(?:er|re)s?|公里",
    "metre": "m|met(?:er|re)s?|metros?|米",
    "mile": "mi|miles?",
    "yard": "yards?",
    "foot": "ft|feet|foot",
    "inch": "inch(?:es)?",
    "celsius": "°? ?c|(?:degrees? )?celsius",
    "fahrenheit": "°? ?f|(?:degrees? )?fahrenheit",
    "percent": "%|percent|per cent|por cento",
    "ms": "ms|milliseconds?",
    "second": "s|secs?|seconds?|segundos?|秒",
    "minute": "mins?|minutes?|minutos?|分钟",
    "hour": "h|hrs?|hours?|horas?|小时",
    "day": "days?|dias?|天",
    "week": "weeks?|semanas?|周",
    "month": "months?|meses|mes|个月",
    "year": "years?|yrs?|anos?|年",
    "kb": "kb|kilobytes?",
    "mb": "mb|megabytes?",
    "gb": "gb|gigabytes?",
    "tb": "tb|terabytes?",
}
"""What a number measures: unit → its forms behind it, regular expressions. Only units that may take
each other's place, as `mg` and `g`, which vectors hardly tell apart; they do `5 cats`, `5 dogs`."""
