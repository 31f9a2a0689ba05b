"""Diagrams of GPT, BERT and NEZHA, each a function named as its file; sizes as in `of_elmo`."""

from of_all import shade
from svg import RED, Drawing


def gpt() -> Drawing:
    d = Drawing(940, 640, "GPT：只看左边，读到最后再回答 | Looks left, answers at the end")
    tokens = ["[START]", "苹", "果", "很", "甜", "[EXTRACT]"]
    kinds = ["mark", "text", "text", "text", "text", "mark"]
    xs = d.row(150, 580, tokens, width=96, gap=10, kinds=kinds)
    d.note(24, 600, "词元 tokens")
    d.note(24, 548, "词元 + 位置")
    d.row(
        150,
        528,
        [f"E({t}) + P{n}" if len(t) == 1 else f"E + P{n}" for n, t in enumerate(tokens)],
        width=96,
        gap=10,
        kinds="table",
    )
    for x in xs:
        d.arrow((x, 578), (x, 560))
        d.arrow((x, 526), (x, 490))
    d.note(798, 548, "(batch, length, 256)")
    _stack(d, x=180, y=430, width=560, attention="带因果掩码的自注意力 masked self-attention：只看左边 left only")
    for x in xs:
        d.arrow((x, 224), (x, 188))
    d.row(150, 156, ["苹", "果", "很", "甜", "[EXTRACT]"], width=96, gap=10, kinds="answer")
    d.box(680, 140, 96, 46, "分类 linear", "(batch, n)", kind="answer")
    d.note(150, 144, "L1：每个位置猜下一个词元 each place foretells the next", size=12)
    d.note(24, 178, "× 词嵌入转置", "(tied)", size=11.5)
    d.note(680, 128, "L2：标签 label", size=12)
    d.text(470, 92, "预训练 pretraining：L1；微调 fine-tuning：L2 + λ · L1", size=15)
    return d


def bert() -> Drawing:
    d = Drawing(940, 700, "BERT：每层都看全句 | Every layer sees the whole text")
    tokens = ["[CLS]", "苹", "[MASK]", "很", "甜", "[SEP]", "真", "好", "[SEP]"]
    kinds = ["mark", "text", "mark", "text", "text", "mark", "text", "text", "mark"]
    xs = d.row(130, 640, tokens, width=70, gap=8, kinds=kinds)
    d.note(24, 660, "词元 tokens")
    for y, name, labels in (
        (590, "词元 token", [f"E({t})" if len(t) == 1 else f"E{t}" for t in tokens]),
        (548, "段 segment", ["A"] * 6 + ["B"] * 3),
        (506, "位置 position", [str(number) for number in range(9)]),
    ):
        d.note(24, y + 20, name)
        d.row(130, y, labels, width=70, gap=8, kinds="table", size=12)
    for x in xs:
        d.text(x, 586, "+", size=12)
        d.text(x, 544, "+", size=12)
        d.arrow((x, 638), (x, 621))
        d.arrow((x, 504), (x, 488))
    d.box(130, 452, 694, 34, "三者相加 sum → LayerNorm → dropout   (batch, length, 256)", kind="table")
    d.arrow((477, 450), (477, 420))
    _stack(d, x=160, y=384, width=634, attention="多头自注意力 self-attention，4 头 heads：谁都看谁 all see all")
    d.arrow((165, 176), (165, 140))
    d.arrow((321, 176), (321, 140))
    d.note(500, 166, "最后一层 last layer  (batch, length, 256)")
    d.box(40, 84, 210, 54, "池化 pooler: tanh(W·[CLS])", "→ 下一句？ (batch, 2)", kind="answer")
    d.box(
        270,
        84,
        450,
        54,
        "被遮的位置 masked places only: Linear, GELU, LayerNorm",
        "× 词表（与输入共用 tied） → (n_masked, 8000)",
        kind="answer",
    )
    d.note(40, 72, "NSP：B 接在 A 后面吗", size=12)
    d.note(270, 72, "MLM：原来是“果” was 果", size=12)
    d.text(830, 106, "loss =", size=14)
    d.text(830, 128, "MLM + NSP", size=14)
    return d


def _stack(d: Drawing, *, x: float, y: float, width: float, attention: str) -> None:
    """A Transformer layer from y upwards: 4 boxes, 190 pixels."""
    rows = [
        "相加、归一 add & LayerNorm",
        "前馈 feed-forward 256 → 1024 → 256，GELU",
        "相加、归一 add & LayerNorm",
        attention,
    ]
    for number, label in enumerate(rows):
        d.box(x, y - 190 + number * 48, width, 34, label, kind="layer")
        if number < 3:
            d.arrow((x + width / 2, y - 190 + (number + 1) * 48), (x + width / 2, y - 154 + number * 48))
    for top in (-190, -94):  # around attention and feed-forward
        d.arrow(
            (x + 60, y + top + 94),
            (x + 60, y + top + 90),
            (x - 16, y + top + 90),
            (x - 16, y + top + 17),
            (x - 2, y + top + 17),
            dashed=True,
            colour=RED,
        )
    d.frame(x - 30, y - 204, width + 52, 222, kind="layer")
    d.text(x + width + 34, y - 90, "× 4 层 layers", anchor="start", bold=True)


def nezha() -> Drawing:
    d = Drawing(920, 430, "NEZHA：注意力知道相距多远 | Attention that knows the distance")
    words = ["我", "爱", "北", "京", "天", "安", "门"]
    d.note(30, 74, "从“京”看出去，距离 j − i  distance from 京")
    xs = d.row(30, 96, words, width=54, kinds=["text", "text", "text", "mark", "text", "text", "text"])
    d.row(30, 140, ["−3", "−2", "−1", "0", "+1", "+2", "+3"], width=54, kinds="table")
    for x in xs:
        d.arrow((x, 126), (x, 138))
    d.arrow((240, 172), (240, 200))
    d.box(30, 202, 414, 58, "a[2m] = sin(p / 10000^(2m/64))", "a[2m+1] = cos(p / 10000^(2m/64))", kind="table")
    d.note(
        30,
        282,
        "p = (j − i，限于 clipped to ±64) + 64；不学 nothing is learned",
        "所有层、所有头共用 the same in all layers and heads",
    )
    d.note(30, 330, "a：(length, length, 64)")
    rows = [[shade(across - down) for across in range(7)] for down in range(7)]
    d.grid(170, 318, 13, rows)
    d.note(282, 336, "同一条斜线同一向量：", "整段挪动，关系不变", "one diagonal, one vector", size=11.5)
    d.box(500, 96, 390, 50, "打分 score:  qᵢ · ( kⱼ + aᵢⱼ ) / √64", kind="layer", size=15)
    d.arrow((695, 146), (695, 176))
    d.box(500, 178, 390, 40, "softmax over j", kind="layer")
    d.arrow((695, 218), (695, 248))
    d.box(500, 250, 390, 50, "输出 output:  Σⱼ 权重 weight · ( vⱼ + aᵢⱼ )", kind="layer", size=14)
    d.note(500, 82, "每个头 a head：(batch, 4, length, 64)")
    d.arrow((444, 231), (472, 231), (472, 121), (498, 121))
    d.arrow((472, 231), (472, 275), (498, 275))
    d.note(
        500,
        330,
        "没有位置表：嵌入只有词元 + 段",
        "no table of positions: token + segment only",
        "比训练时更长的文本也能读 no text is too long",
    )
    return d
