"""Diagrams of ELMo, each a function named as its file. Sizes are those of `wenlei pretrain --config small`."""

from itertools import pairwise

from svg import RED, Drawing


def character_cnn() -> Drawing:
    d = Drawing(900, 430, "字符卷积：从字到词向量 | A word's vector from its characters")
    d.row(
        40,
        364,
        ["‹词首›", "人", "工", "智", "能", "‹词尾›", "填充"],
        width=56,
        gap=6,
        kinds=["mark", *["text"] * 4, "mark", "text"],
    )
    d.note(500, 384, "字符编号 (n_words, word_length=12)")
    d.arrow((256, 362), (256, 334))
    d.box(40, 300, 428, 32, "字向量 character embeddings  (n_words, 12, 64)", kind="table")
    d.note(500, 320, "一个字符 64 维；填充恒为 0")
    for x, width, number in ((40, 1, 32), (150, 2, 64), (260, 3, 96), (370, 4, 64)):
        d.arrow((x + 49, 298), (x + 49, 266))
        d.box(x, 218, 98, 46, f"宽 {width} width", f"{number} 个 filters", kind="layer", size=12)
        d.arrow((x + 49, 216), (x + 49, 196))
    d.note(500, 236, "四种宽度的卷积 + ReLU：", "看 1、2、3、4 个字的片段", "convolutions over pieces of the word")
    d.box(40, 160, 428, 34, "每个滤波器取最大 max over the word → (n_words, 256)", kind="layer")
    d.note(500, 182, "片段在哪里无妨，有没有才要紧")
    d.arrow((254, 158), (254, 136))
    d.box(40, 100, 428, 34, "高速公路层 2 × highway:  g·relu(Wx) + (1−g)·x", kind="layer")
    d.note(500, 122, "门 g 决定改多少、原样留多少；形状不变")
    d.arrow((254, 98), (254, 82), (700, 82))
    d.box(702, 62, 176, 40, "投影 projection", "(n_words, 256)", kind="answer")
    return d


def elmo() -> Drawing:
    d = Drawing(950, 620, "ELMo：两个方向各读各的 | Two one-sided readers, one spelling")
    words = ["‹s›", "苹果", "很", "甜", "‹/s›"]
    d.note(24, 562, "jieba 的词")
    centres = {}
    for side, left in (("forward", 110), ("backward", 530)):
        centres[side] = d.row(left, 544, words, width=64, gap=12, height=28)
        d.box(left, 484, 368, 34, "字符卷积 character CNN（两边同一个 the same one）", kind="table", size=12.5)
        for x in centres[side]:
            d.arrow((x, 542), (x, 520))
    d.note(24, 504, "h₀")
    for level, y in ((1, 404), (2, 304)):
        d.note(24, y + 22, f"h{'₁' if level == 1 else '₂'}")
        for side, reading in (("forward", 1), ("backward", -1)):
            xs = centres[side]
            for x in xs:
                d.box(x - 30, y, 60, 34, "LSTM", kind="lstm", size=12)
                d.arrow((x, 482 if level == 1 else 402), (x, y + 36))
            for one, other in pairwise(xs):
                start, end = (one + 30, other - 31) if reading == 1 else (other - 30, one + 31)
                d.arrow((start, y + 17), (end, y + 17))
    for side in centres:  # around the second layer
        x = centres[side][-1]
        d.arrow((x, 362), (x + 44, 362), (x + 44, 282), (x + 3, 282), dashed=True, colour=RED)
        for each in centres[side]:
            d.arrow((each, 302), (each, 254))
        d.text(x + 48, 326, "残差", anchor="start", size=12, colour=RED)
    d.note(110, 112, "状态 states (batch, length, 256)，记忆 cells 512")
    d.note(530, 112, "残差 residual：第二层加上第一层 layer 2 adds layer 1")
    d.box(
        110,
        216,
        788,
        36,
        "softmax（两边共用 shared）：每个词的向量由另一个字符卷积拼出 words' vectors by another CNN",
        kind="answer",
    )
    d.row(110, 156, ["苹果", "很", "甜", "‹/s›"], width=64, gap=12, height=28, kinds="answer")
    d.row(606, 156, ["‹s›", "苹果", "很", "甜"], width=64, gap=12, height=28, kinds="answer")
    for x in [*centres["forward"][:4], *centres["backward"][1:]]:
        d.arrow((x, 214), (x, 186))
    d.note(110, 140, "前向 forward：在“很”处猜“甜” at 很, guess 甜")
    d.note(530, 140, "后向 backward：在“很”处猜“苹果” at 很, guess 苹果")
    d.text(470, 82, "loss = − Σ log p(词 | 左边 left) − Σ log p(词 | 右边 right)", size=15)
    d.note(
        24,
        602,
        "同一句话画了两遍，好看清两个方向；词向量只有一份。 The text is drawn twice; its words have one vector each.",
    )
    return d


def cnn_softmax() -> Drawing:
    d = Drawing(920, 400, "CNN softmax：词的输出向量由拼写算出 | Output vectors from spelling")
    d.box(30, 70, 250, 40, "LSTM 状态 h   (n, 256)", kind="lstm")
    d.box(
        30, 190, 250, 44, "字符卷积 CNN（自己的参数 its own）", "拼写 spelling → (n_words, 256)", kind="table", size=12
    )
    d.box(30, 270, 250, 44, "修正 correction c  (n_words, 32)", "M：32 → 256", kind="table", size=12)
    d.arrow((280, 212), (350, 236))
    d.arrow((280, 292), (350, 262))
    d.box(352, 228, 40, 40, "+", size=18, kind="layer")
    d.arrow((392, 248), (444, 248))
    d.text(418, 240, "e(w)")
    d.box(446, 226, 130, 44, "h · e(w) + b(w)", kind="layer")
    d.arrow((280, 90), (511, 90), (511, 224))
    d.arrow((576, 238), (640, 120))
    d.arrow((576, 258), (640, 300))
    d.box(
        642,
        70,
        254,
        84,
        "全量 full（评估 evaluation）",
        "20,000 个词都比 all words",
        "exp(h·e) / Σ exp(h·e)",
        kind="answer",
    )
    d.box(
        642,
        262,
        254,
        84,
        "采样 sampled（训练 training）",
        "目标 + 约四千次抽取的词",
        "target + 4,096 draws, weighted",
        kind="answer",
    )
    d.note(
        30, 348, "修正让拼写相近、意思不同的词分得开", "The correction keeps apart words that are only spelled alike"
    )
    d.note(642, 176, "推断前可把所有 e(w) 算成一张表", "all e(w) can be made beforehand")
    d.note(642, 370, "每个负例除以被抽中的概率 π：期望不变", size=11.5)
    return d


def scalar_mix() -> Drawing:
    d = Drawing(900, 260, "标量混合：每个任务自己的配方 | The scalar mix, learned by each task")
    for y, name, label in (
        (60, "h₂", "h₂ 第二层：多语义 meaning"),
        (120, "h₁", "h₁ 第一层：多句法 syntax"),
        (180, "h₀", "h₀ 词本身：拼写 spelling"),
    ):
        d.box(30, y, 300, 40, f"{label}", kind="table" if name == "h₀" else "lstm")
        d.arrow((330, y + 20), (470, y + 20), (520, 140))
        d.text(400, y + 14, f"× s{name[1]}")
    d.box(522, 118, 70, 44, "Σ", kind="layer", size=18)
    d.arrow((592, 140), (666, 140))
    d.text(628, 132, "× γ")
    d.box(668, 112, 210, 56, "ELMo", "(batch, length, 512)", kind="answer")
    d.note(520, 214, "s = softmax(w)，和为 1；γ 调尺度", "w 与 γ 是任务学的 4 个数 4 numbers of the task")
    return d
