"""Diagrams of parts: long texts, masks, heads; each a function named as its file."""

from svg import FAINT, Drawing


def tdmca() -> Drawing:
    d = Drawing(920, 470, "T-DMCA：长文的注意力 | Attention for long texts")
    d.note(30, 62, "层轮流 layers take turns: L → M → L → M（config.json: block_length 256, compression 3）")
    d.text(30, 100, "L 层：块内注意力 local", anchor="start", bold=True)
    for number, labels in enumerate((["1", "2", "3", "4"], ["5", "6", "7", "8"], ["9", "…", "", ""])):
        x = 30 + number * 210
        d.row(x, 160, labels, width=42, gap=4, kinds="text")
        d.row(x, 112, labels, width=42, gap=4, kinds="layer")
        d.frame(x - 6, 106, 192, 90, kind="layer")
        for query in range(4):
            for key in range(query + 1):
                d.arrow((x + 21 + key * 46, 158), (x + 21 + query * 46, 144), head=False)
    d.note(660, 132, "每块各算各的，块变成", "批里的一行 (batch·blocks, 256, …)", "代价 cost ∝ length × 256")
    d.text(30, 236, "M 层：压缩记忆 memory-compressed", anchor="start", bold=True)
    d.row(30, 420, [str(n) for n in range(1, 10)], width=42, gap=4, kinds="text")
    d.note(456, 440, "键与值 keys, values  (batch, length, 256)")
    for number in range(3):
        x = 30 + number * 138
        for token in range(3):
            d.arrow((x + 21 + token * 46, 418), (x + 67, 372), head=token == 1)
        d.box(x + 22, 338, 90, 32, f"{3 * number + 1}–{3 * number + 3}", kind="table")
    d.note(
        456,
        346,
        "卷积：宽 3、步 3  convolution, width 3, stride 3",
        "→ (batch, 1 + ⌈length/3⌉, 256)；第 1 个词元另留一份",
        "the first token's own key stays beside them",
        size=11.5,
    )
    d.row(30, 250, [str(n) for n in range(1, 10)], width=42, gap=4, kinds="layer")
    d.note(456, 270, "查询不缩短 queries stay as many")
    for end, count in ((327, 2), (419, 3)):
        for number in range(count):
            d.arrow((97 + number * 138, 336), (end, 282), dashed=end == 327)
    d.note(
        456,
        300,
        "一个混合要等最后一个词元读过才看得见",
        "a mixture is seen once its last token has been read",
        size=11.5,
    )
    return d


def masking() -> Drawing:
    d = Drawing(920, 460, "掩码语言模型：15 %，80/10/10 | Masked language model")
    words = ["今", "天", "的", "苹", "果", "真", "的", "很", "甜", "。"]
    d.note(30, 64, "原文 text（jieba 分词 words: 今天 / 的 / 苹果 / 真的 / 很 / 甜 / 。）")
    d.row(30, 76, words, width=48, gap=5)
    d.box(600, 76, 290, 30, "抽 15 % choose 15 % of tokens", kind="mark")
    d.text(30, 150, "抽中的怎么处理 what is shown of the chosen", anchor="start", bold=True)
    x = 30.0
    for share, label, kind in ((0.8, "80 %  →  [MASK]", "mark"), (0.1, "10 %", "layer"), (0.1, "10 %", "table")):
        d.box(x, 162, 640 * share, 34, label, kind=kind, size=12.5)
        x += 640 * share
    d.note(540, 214, "换一个", "random", anchor="start", size=11.5)
    d.note(608, 214, "原样", "as it is", anchor="start", size=11.5)
    d.note(690, 176, "三种都要猜原来是什么", "all three are to be guessed", size=12)
    d.text(30, 264, "逐字 by token", anchor="start", bold=True)
    d.row(30, 276, ["今", "天", "的", "[M]", "果", "真", "的", "[M]", "甜", "。"], width=48, gap=5, kinds=_marked(3, 7))
    d.note(580, 286, "果已露出，苹就好猜：", "with 果 in sight, 苹 is easy", size=12)
    d.text(30, 340, "整词 whole words（wwm）", anchor="start", bold=True)
    d.row(30, 352, ["今", "天", "的", "[M]", "[M]", "真", "的", "很", "甜", "。"], width=48, gap=5, kinds=_marked(3, 4))
    d.note(580, 362, "一个词的字同进同出，要看上下文：", "all of a word, or none of it", size=12)
    d.note(
        30,
        416,
        "抽词时按随机次序加到 15 %，压线的词按比例抽签，所以短文也恰好平均 15 %。",
        "Words are added in random order; the one across the line is drawn by its share, so 15 % is the exact mean.",
    )
    return d


def _marked(*places: int) -> list[str]:
    return ["mark" if number in places else "text" for number in range(10)]


def heads() -> Drawing:
    d = Drawing(940, 560, "BERT 的五种头 | BERT's five heads")
    panels = (
        (24, 60, "一段文本 one text", ["[CLS]", "文", "本", "[SEP]"], (0,), "K 个标签的分数  K × H"),
        (330, 60, "一对 pair", ["[CLS]", "A", "[SEP]", "B", "[SEP]"], (0,), "K 个标签的分数  K × H"),
        (636, 60, "词元标注 token labels", ["[CLS]", "张", "三", "来", "[SEP]"], (1, 2, 3), "每个词元 K 个分数  K × H"),
        (24, 310, "答案片段 span", ["[CLS]", "问", "[SEP]", "段", "落"], (0, 3, 4), "起、止各一个向量  2 × H"),
        (330, 310, "选择 multiple choice", ["[CLS]", "题", "[SEP]", "答₁", "[SEP]"], (0,), "每个答案一分  1 × H"),
    )
    for x, y, name, tokens, read, answer in panels:
        d.text(x, y, name, anchor="start", bold=True)
        width = 280 / len(tokens) - 4
        xs = d.row(x, y + 168, tokens, width=width, gap=4, size=12)
        d.box(x, y + 104, 276, 34, "编码器 encoder", kind="layer")
        for number, middle in enumerate(xs):
            d.arrow((middle, y + 166), (middle, y + 140))
            if number in read:
                d.arrow((middle, y + 102), (middle, y + 66))
        d.box(x, y + 20, 276, 44, answer, kind="answer")
    d.text(636, 310, "取片段 choosing the span", anchor="start", bold=True)
    d.note(
        636,
        332,
        "分 = S·Tᵢ + E·Tⱼ",
        "训练 training：两个 softmax，各自学",
        "推断 inference：只在 i ≤ j 里选最大",
        "the best with i ≤ j only",
        size=12,
    )
    d.grid(
        700,
        412,
        17,
        [[("#b86a1e" if (i, j) == (1, 3) else "#fde6cf") if j >= i else None for j in range(6)] for i in range(6)],
    )
    d.note(690, 426, "i 起", anchor="end", size=12)
    d.note(811, 426, "j 止", anchor="start", size=12)
    d.text(751, 534, "空白处不许选 blank: never", size=12, colour=FAINT)
    return d
