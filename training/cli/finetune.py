"""`wenlei finetune`: token labelling, answer spans and multiple choice, from files of JSON lines."""

import json as json_lines
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from model.console import JsonFlag, emit
from model.errors import BadInput
from model.types import Split
from training.cli.common import HomeOption, choice, start_torch

if TYPE_CHECKING:
    from training.heads.tuning import AnyTask, HeadOptions
    from training.pretrained import Start

app = typer.Typer(
    no_args_is_help=True,
    help="词元标注、答案片段、多项选择 | token labelling, answer spans, multiple choice",
)

TrainOption = Annotated[Path, typer.Option(help="训练用的 JSON 行文件 | JSON lines to train on")]
DevOption = Annotated[Path, typer.Option(help="开发集：选出最好的一步 | to choose the best step on")]
TestOption = Annotated[Path | None, typer.Option(help="测试集：只在最后评估 | to evaluate on at the end")]
InitOption = Annotated[
    str, typer.Option(help="预训练起点：offline、hub 上的模型名或文件夹 | start: offline, a hub id or a folder")
]
EpochsOption = Annotated[int, typer.Option(min=1, help="训练轮数 | passes over the train file")]
BatchOption = Annotated[int, typer.Option(min=1, help="每步的窗口数或题数 | windows or questions a step")]
RateOption = Annotated[float, typer.Option(min=0, help="编码器的学习率 | of the encoder")]
HeadRateOption = Annotated[float, typer.Option(min=0, help="顶层的学习率 | of the layer on top")]
LengthOption = Annotated[int, typer.Option(min=16, help="每个窗口的词元数上限 | tokens of a window at most")]
StrideOption = Annotated[
    int, typer.Option(min=1, help="长文本的下一个窗口后移多少词元 | tokens from one window of a long text to the next")
]
FreezeOption = Annotated[bool, typer.Option("--freeze", help="只训练顶层 | train the layer on top alone")]
DropoutOption = Annotated[float, typer.Option(min=0, max=0.9, help="丢弃率 | dropout of hidden states")]
PatienceOption = Annotated[
    int, typer.Option(min=1, help="多少次评估没有进步就停 | evaluations without gain before it stops")
]
PrecisionOption = Annotated[str, typer.Option(help="auto、fp32、bf16 或 fp16 | auto, fp32, bf16 or fp16")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="随机种子 | seed of all randomness")]
OutOption = Annotated[Path | None, typer.Option(help="训练记录文件夹 | folder of the run")]


@app.command()
def tokens(
    train: TrainOption,
    dev: DevOption,
    test: TestOption = None,
    init: InitOption = "offline",
    epochs: EpochsOption = 3,
    batch_size: BatchOption = 32,
    learning_rate: RateOption = 5e-5,
    head_learning_rate: HeadRateOption = 5e-4,
    max_length: LengthOption = 128,
    stride: StrideOption = 96,
    dropout: DropoutOption = 0.1,
    freeze: FreezeOption = False,
    patience: PatienceOption = 3,
    precision: PrecisionOption = "auto",
    seed: SeedOption = 0,
    out: OutOption = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """词元标注（如命名实体）；中断后用同样的命令继续。| Label tokens, named entities say; the same command resumes.

    每行 Each line:  {"text": "他在北京。", "entities": [{"start": 2, "end": 4, "label": "地名"}]}

    例 Example:  wenlei finetune tokens --train train.jsonl --dev dev.jsonl --test test.jsonl --out var/runs/names
    """
    start_torch()
    from training.heads.tokens import TokenLabelling

    options = _options(
        init, precision, max_length=max_length, stride=stride, dropout=dropout, freeze=freeze,
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, head_learning_rate=head_learning_rate,
        patience=patience,
    )  # fmt: skip
    _finetune(TokenLabelling(), _start(init, home), options, (train, dev, test), seed, out, home, json)


@app.command()
def span(
    train: TrainOption,
    dev: DevOption,
    test: TestOption = None,
    init: InitOption = "offline",
    epochs: EpochsOption = 3,
    batch_size: BatchOption = 16,
    learning_rate: RateOption = 5e-5,
    head_learning_rate: HeadRateOption = 5e-4,
    max_length: LengthOption = 256,
    stride: StrideOption = 128,
    max_answer: Annotated[int, typer.Option(min=1, help="答案的词元数上限 | tokens of an answer at most")] = 64,
    dropout: DropoutOption = 0.1,
    freeze: FreezeOption = False,
    patience: PatienceOption = 3,
    precision: PrecisionOption = "auto",
    seed: SeedOption = 0,
    out: OutOption = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """在文中找出问题的答案；中断后用同样的命令继续。| Find a question's answer in a text; the same command resumes.

    每行 Each line:  {"question": "他在哪？", "context": "他在北京。", "answer": {"start": 2, "text": "北京"}}

    文中没有答案时 where the text has none:  "answer": null

    例 Example:  wenlei finetune span --train train.jsonl --dev dev.jsonl --out var/runs/answers
    """
    start_torch()
    from training.heads.spans import AnswerSpans

    options = _options(
        init, precision, max_length=max_length, stride=stride, dropout=dropout, freeze=freeze,
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, head_learning_rate=head_learning_rate,
        patience=patience,
    )  # fmt: skip
    task = AnswerSpans(longest=max_answer)
    _finetune(task, _start(init, home), options, (train, dev, test), seed, out, home, json)


@app.command(name="choice")
def multiple_choice(
    train: TrainOption,
    dev: DevOption,
    test: TestOption = None,
    init: InitOption = "offline",
    epochs: EpochsOption = 3,
    batch_size: BatchOption = 16,
    learning_rate: RateOption = 5e-5,
    head_learning_rate: HeadRateOption = 5e-4,
    max_length: LengthOption = 128,
    lm_weight: Annotated[
        float | None,
        typer.Option(
            min=0, help="仅 GPT：语言模型损失的权重，默认 0.5 | GPT only: weight of its language model's loss"
        ),
    ] = None,
    dropout: DropoutOption = 0.1,
    freeze: FreezeOption = False,
    patience: PatienceOption = 3,
    precision: PrecisionOption = "auto",
    seed: SeedOption = 0,
    out: OutOption = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """从几个选项中选一个；中断后用同样的命令继续。| Choose one of several texts; the same command resumes.

    每行 Each line:  {"text": "天黑了，所以他", "choices": ["开灯", "关灯"], "answer": 0}

    例 Example:  wenlei finetune choice --train train.jsonl --dev dev.jsonl --out var/runs/choices
    """
    start_torch()
    from training.heads.choices import GptChoice, MultipleChoice
    from training.heads.tuning import is_decoder

    options = _options(
        init, precision, max_length=max_length, stride=max_length, dropout=dropout, freeze=freeze,
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, head_learning_rate=head_learning_rate,
        patience=patience,
    )  # fmt: skip
    start = _start(init, home)
    decoder = is_decoder(start)
    if lm_weight is not None and not decoder:
        raise BadInput(f"--lm-weight is for GPT, and --init {init} is an encoder; leave it out")
    task = GptChoice(lm_weight=0.5 if lm_weight is None else lm_weight) if decoder else MultipleChoice()
    _finetune(task, start, options, (train, dev, test), seed, out, home, json)


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="训练记录文件夹 | folder of the run")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON 行文件，不必有答案 | JSON lines; need no answers")],
) -> None:
    """用训练好的模型回答：每行输出一个 JSON 对象，格式与训练用的相同。| Answer: JSON lines like those to train on.

    例 Example:  wenlei finetune predict var/runs/names new.jsonl > answered.jsonl
    """
    start_torch()
    from training.heads.tuning import answer

    for row in answer(run, file):
        sys.stdout.write(json_lines.dumps(row, ensure_ascii=False) + "\n")


def _options(
    init: str, precision: str, *, max_length: int, stride: int, dropout: float, freeze: bool, **loop: Any
) -> "HeadOptions":
    from training.device import NumberFormat
    from training.heads.tuning import HeadOptions
    from training.loop import Options

    return HeadOptions(
        init=init,
        max_length=max_length,
        stride=stride,
        dropout=dropout,
        freeze=freeze,
        loop=Options(**loop, precision=choice(NumberFormat, precision, "--precision")),
    )


def _start(init: str, home: Path) -> "Start":
    from training.pretrained import resolve

    return resolve(init, cache=home / "pretrained")


def _finetune(
    task: "AnyTask",
    start: "Start",
    options: "HeadOptions",
    files: tuple[Path, Path, Path | None],
    seed: int,
    out: Path | None,
    home: Path,
    json: bool,
) -> None:
    from training.heads.tuning import finetune

    splits = zip((Split.TRAIN, Split.DEV, Split.TEST), files, strict=True)
    run = finetune(
        task,
        {split: path for split, path in splits if path is not None},
        start=start,
        options=options,
        seed=seed,
        out=out or home / "runs" / f"{task.name}-{files[0].stem}-seed{seed}",
    )
    emit(
        {"run": str(run.path), "figures": run.figures},
        as_json=json,
        render=lambda console: _show(console, run.figures, run.path),
    )


def _show(console: Console, figures: dict[str, dict[str, Any]], path: Path) -> None:
    names = [name for name, value in next(iter(figures.values())).items() if isinstance(value, float)]
    table = Table("划分 split", "行 rows", *names)
    for split, each in figures.items():
        table.add_row(split, str(each["n"]), *(f"{each[name]:.4f}" for name in names))
    console.print(table)
    console.print(f"训练记录 run  {path}", soft_wrap=True, markup=False, highlight=False)
