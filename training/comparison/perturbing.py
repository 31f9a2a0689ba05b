"""The same texts written as people do who evade a filter: homophones, split characters, traditional script, symbols.

A classifier that reads what is meant loses little on them. Labels stay, for a reader understands them all the same.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from opencc import OpenCC
from pypinyin import Style, pinyin

from model.types import Text

SHARE = 0.2  # of a text's characters that are written in another way, one at least
SYMBOLS = "·*_|~"
# Two characters that look like one; those of common words whose parts can be typed.
PARTS = (
    "好女子 明日月 林木木 朋月月 他亻也 你亻尔 休亻木 信亻言 体亻本 作亻乍 件亻牛 位亻立 住亻主 何亻可 但亻旦 "
    "价亻介 妈女马 姐女且 妹女未 她女也 如女口 红纟工 级纟及 给纟合 组纟且 江氵工 河氵可 海氵每 洋氵羊 湖氵胡 "
    "清氵青 法氵去 油氵由 注氵主 汉氵又 打扌丁 把扌巴 找扌戈 技扌支 拍扌白 持扌寺 指扌旨 推扌隹 提扌是 村木寸 "
    "材木才 校木交 松木公 树木对 机木几 根木艮 样木羊 极木及 相木目 想相心 思田心 忘亡心 情忄青 性忄生 怕忄白 "
    "时日寸 晚日免 昨日乍 晴日青 暗日音 星日生 早日十 音立日 章立早 意音心 说讠兑 话讠舌 语讠吾 请讠青 谁讠隹 "
    "认讠人 记讠己 计讠十 许讠午 证讠正 评讠平 吃口乞 唱口昌 吗口马 吧口巴 啊口阿 和禾口 种禾中 秋禾火 科禾斗 "
    "秒禾少 地土也 坏土不 块土夬 男田力 加力口 动云力 功工力 助且力 岩山石 尘小土 尖小大 歪不正 铁钅失 银钅艮 "
    "针钅十 饭饣反 饱饣包 饿饣我 跑足包 路足各 鸡又鸟 鹅我鸟 对又寸 欢又欠 难又隹 观又见 双又又 从人人 炎火火 "
    "灯火丁 炒火少 烟火因 妙女少 砂石少 破石皮 码石马 研石开 确石角 眼目艮 睡目垂 盼目分 知矢口 短矢豆 张弓长 "
    "强弓虽 到至刂 别另刂 利禾刂"
)
SPLIT = {each[0]: each[1:] for each in PARTS.split()}

Rewrite = Callable[[str, np.random.Generator], str]


def perturbations(texts: Sequence[Text]) -> dict[str, Callable[[Sequence[Text]], list[Text]]]:
    """Name → what rewrites texts so; homophones are taken from among the characters of `texts`."""
    forms: dict[str, Rewrite] = {
        "同音字 homophones": partial(_replaced, choices=_homophones(texts)),
        "拆字 split characters": partial(_replaced, choices={one: [parts] for one, parts in SPLIT.items()}),
        "繁体 traditional script": _traditional(),
        "插入符号 inserted symbols": _with_symbols,
    }
    return {name: partial(_rewritten, rewrite=rewrite) for name, rewrite in forms.items()}


def _rewritten(texts: Sequence[Text], *, rewrite: Rewrite) -> list[Text]:
    random = np.random.default_rng(0)
    return [
        Text(rewrite(text.text, random), None if text.pair is None else rewrite(text.pair, random)) for text in texts
    ]


def _homophones(texts: Sequence[Text]) -> dict[str, list[str]]:
    """Each Chinese character of `texts` → those that sound alike, with any tone; only where there are any."""
    known = sorted({char for text in texts for char in f"{text.text}{text.pair or ''}" if "\u4e00" <= char <= "\u9fff"})
    by_sound: defaultdict[str, list[str]] = defaultdict(list)
    for char in known:
        by_sound[_sound(char)].append(char)
    return {char: others for char in known if (others := [one for one in by_sound[_sound(char)] if one != char])}


def _sound(char: str) -> str:
    return pinyin(char, style=Style.NORMAL)[0][0]


def _replaced(text: str, random: np.random.Generator, *, choices: dict[str, list[str]]) -> str:
    """Some of the characters that `choices` has, each by one of its choices."""
    able = [place for place, char in enumerate(text) if char in choices]
    if not able:
        return text
    characters = list(text)
    for place in random.choice(able, min(len(able), max(1, round(SHARE * len(text)))), replace=False).tolist():
        others = choices[text[place]]
        characters[place] = others[int(random.integers(len(others)))]
    return "".join(characters)


def _traditional() -> Rewrite:
    convert = OpenCC("s2t").convert
    return lambda text, _: str(convert(text))


def _with_symbols(text: str, random: np.random.Generator) -> str:
    """Symbols between some of the characters."""
    characters = list(text)
    for place in random.choice(len(text), max(1, round(SHARE * len(text))), replace=False).tolist():
        characters[place] += SYMBOLS[int(random.integers(len(SYMBOLS)))]
    return "".join(characters)
