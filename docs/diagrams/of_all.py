"""Diagrams of the whole family, each a function named as its file."""

from collections.abc import Callable, Sequence

from svg import Drawing

SEEN, OWN = "#7fa8d4", "#3b6ea5"


def family() -> Drawing:
    d = Drawing(900, 330, "一家人：三种预训练的关系 | How the three relate")
    d.box(
        30,
        60,
        250,
        84,
        "ELMo · 2018.02",
        "词 words，双向 LSTM biLSTM",
        "左右各读各的 two one-sided readers",
        kind="lstm",
    )
    d.box(
        30, 196, 250, 84, "GPT · 2018.06", "子词 sub-words，解码器 decoder", "只看左边 sees the left only", kind="layer"
    )
    d.box(
        400, 128, 240, 84, "BERT · 2018.10", "子词 sub-words，编码器 encoder", "每层两边都看 both sides", kind="layer"
    )
    d.box(730, 60, 150, 62, "NEZHA · 2019", "换了位置与掩码", kind="layer")
    d.box(730, 218, 150, 62, "ERNIE, RoBERTa,", "ELECTRA …", kind="layer")
    d.arrow((280, 102), (340, 102), (398, 150))
    d.note(292, 78, "LSTM → Transformer")
    d.arrow((280, 238), (340, 238), (398, 190))
    d.note(292, 262, "单向 → 双向（靠掩码）", "one-sided → both (by masks)")
    d.arrow((640, 150), (728, 91))
    d.arrow((640, 190), (728, 249))
    d.note(664, 176, "相对位置、整词掩码、LAMB", size=11.5)
    d.note(30, 308, "T-DMCA（长文的省内存注意力 attention for long texts）→ GPT 的骨架 GPT's body")
    return d


def attention_masks() -> Drawing:
    d = Drawing(940, 520, "谁看得见谁 | Who sees whom")
    n, cell = 8, 18
    d.note(
        24,
        60,
        "一行是一个看的位置，一列是一个被看的；深蓝是自己。 A row looks at columns; dark blue is the place itself.",
    )

    def full(_i: int, _j: int) -> bool:
        return True

    def left(i: int, j: int) -> bool:
        return j <= i

    def right(i: int, j: int) -> bool:
        return j >= i

    def local(i: int, j: int) -> bool:
        return j <= i and i // 4 == j // 4

    panels: Sequence[tuple[int, int, str, str, Callable[[int, int], bool]]] = (
        (40, 92, "BERT", "每层看全句 all, in every layer", full),
        (270, 92, "GPT", "自己与左边 itself and the left", left),
        (500, 92, "T-DMCA L 层", "块内的左边 inside its block", local),
        (40, 312, "ELMo 前向 forward", "经状态读过的 has been read", left),
        (270, 312, "ELMo 后向 backward", "另一个网络 another network", right),
    )
    for x, y, name, rule, sees in panels:
        d.text(x, y, name, anchor="start", bold=True)
        d.note(x, y + 18, rule, size=11.5)
        d.grid(x, y + 28, cell, [[_seen(sees(i, j), own=i == j) for j in range(n)] for i in range(n)])
    x, y = 730, 92
    d.text(x, y, "T-DMCA M 层", anchor="start", bold=True)
    d.note(x, y + 18, "压缩后的 compressed by 3", size=11.5)
    last_covered = [-1, 2, 5, 8]
    d.grid(x, y + 28, cell, [[_seen(i >= last, own=False) for last in last_covered] for i in range(n)])
    d.note(x + 82, y + 44, "列 columns:", "词元 0 token 0", "0–2 的混合", "3–5 的混合", "6–8 的混合", size=11.5)
    d.text(500, 312, "NEZHA", anchor="start", bold=True)
    d.note(500, 330, "同 BERT，颜色是距离 as BERT, by distance", size=11.5)
    d.grid(500, 340, cell, [[shade(j - i) for j in range(n)] for i in range(n)])
    d.note(
        730,
        356,
        "BERT：第 2 层起，",
        "经过别人绕回来也看得见自己，",
        "所以要挖空才能考。",
        "From layer 2 on a token sees",
        "itself by way of others: so it",
        "must be masked to be guessed.",
        size=11.5,
    )
    d.note(
        40,
        506,
        "ELMo 的每个位置还要拼上后向同一位置的状态；猜词时只用一边。 ELMo joins both states; each guess uses one.",
    )
    return d


def shade(distance: int) -> str:
    colours = ("#3b6ea5", "#7fa8d4", "#a9c5e3", "#d3e2f2") if distance <= 0 else ("", "#e8b27c", "#f1cfab", "#f9e8d5")
    return colours[min(abs(distance), 3)]


def _seen(yes: bool, *, own: bool) -> str | None:
    return (OWN if own else SEEN) if yes else None


def frames() -> Drawing:
    d = Drawing(940, 560, "输入的框架：一个网络，各种任务 | Input frames: one network, many tasks")
    d.text(24, 68, "GPT：答案在最后一个词元 answers at the last token", anchor="start", bold=True)
    gpt_rows = (
        ("一段文本 one text", (("[START]", "文本 text", "[EXTRACT]"),)),
        ("有序的一对 ordered pair", (("[START]", "前提 premise", "[DELIMITER]", "假设 hypothesis", "[EXTRACT]"),)),
        (
            "相似 similarity",
            (("[START]", "A", "[DELIMITER]", "B", "[EXTRACT]"), ("[START]", "B", "[DELIMITER]", "A", "[EXTRACT]")),
        ),
        (
            "选择 choices",
            (
                ("[START]", "题 context", "[DELIMITER]", "答案 answer 1", "[EXTRACT]"),
                ("[START]", "题 context", "[DELIMITER]", "答案 answer 2", "[EXTRACT]"),
            ),
        ),
    )
    y = 84
    for name, sequences in gpt_rows:
        d.note(24, y + 18, name)
        for sequence in sequences:
            _sequence(d, 170, y, sequence)
            y += 34
        y += 6
    d.note(800, 178, "两个状态相加", "states added", size=11.5)
    d.note(800, 252, "各得一分，", "softmax", size=11.5)
    d.text(24, 334, "BERT：答案在 [CLS]，或在每个词元 answers at [CLS], or at every token", anchor="start", bold=True)
    bert_rows = (
        ("一段文本 one text", ("[CLS]", "文本 text", "[SEP]"), "段 A"),
        ("一对 pair", ("[CLS]", "A", "[SEP]", "B", "[SEP]"), "段 A…A B…B"),
        ("问答 question", ("[CLS]", "问题 question", "[SEP]", "段落 context", "[SEP]"), "段 A…A B…B"),
        ("选择 choices", ("[CLS]", "题 context", "[SEP]", "答案 k answer k", "[SEP]"), "每个答案一条"),
    )
    y = 350
    for name, sequence, segments in bert_rows:
        d.note(24, y + 18, name)
        end = _sequence(d, 170, y, sequence)
        d.note(end + 12, y + 18, segments, size=11.5)
        y += 38
    d.note(
        24,
        528,
        "[DELIMITER]、[EXTRACT] 微调时才加，嵌入随机起步；BERT 的 [CLS]、[SEP] 预训练时就有。",
        "[DELIMITER] and [EXTRACT] come with fine-tuning, at random; BERT's [CLS] and [SEP] are pretrained.",
    )
    return d


def _sequence(d: Drawing, x: float, y: float, parts: Sequence[str]) -> float:
    """Parts of a sequence side by side, special tokens narrow; where it ends."""
    for part in parts:
        special = part.startswith("[")
        width = 96.0 if special else 150.0
        d.box(x, y, width, 28, part, kind="mark" if special else "text", size=12)
        x += width + 4
    return x
