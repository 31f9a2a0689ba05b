"""`wenlei distill`: a small, fast student of a trained classifier."""

from pathlib import Path
from typing import Annotated

import typer

from model.console import JsonFlag, emit
from model.snapshot import open_snapshot
from training.cli.common import (
    HomeOption,
    LimitOption,
    OutOption,
    SeedOption,
    SnapshotOption,
    choice,
    show_run,
    start_torch,
)

STAGES = "各阶段 | the stages"
HEAD_LEARNING_RATE = 1e-3  # at least: of the linear layer on top
LABELS_DROPOUT = 0.1  # of a control; what a teacher says is seen too seldom to be learned by heart
AUGMENT = "增广 | augmentation"
STUDENT = "学生 | the student"


def distill(
    teacher: Annotated[
        list[Path],
        typer.Option(
            metavar="RUN|BUNDLE",
            help="教师：训练记录或模型包；可多次给出，回答取平均，各层看第一个 | a trained classifier; of several "
            "the answers are averaged, and the first one's layers followed",
        ),
    ],
    snapshot: SnapshotOption,
    student: Annotated[
        str | None,
        typer.Option(
            help="tiny4-312、tiny6-768、rbt3 或 JSON 文件 | one of these sizes, or a JSON file of layers, hidden_size, "
            "heads, inner_size",
            rich_help_panel=STUDENT,
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="学生就是这个起点（如预训练记录），不由教师裁出 | a start that is the student, a run of wenlei "
            "pretrain say, in place of one cut from the teacher",
            rich_help_panel=STUDENT,
        ),
    ] = None,
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option(
            help="无标签文本（每行一条，可为 .xz、.gz）或快照，可多次给出 | texts without labels, a line each, or a "
            "snapshot; may be given again"
        ),
    ] = None,
    augment: Annotated[
        str,
        typer.Option(
            help="换词造出更多训练文本：none、masked-lm 或 neighbours（词向量近邻） | more texts of those of train, by "
            "other words: none, masked-lm, or neighbours (by word vectors)",
            rich_help_panel=AUGMENT,
        ),
    ] = "none",
    masked_lm: Annotated[
        str | None,
        typer.Option(
            help="用来换词的掩码语言模型：训练教师的起点，或 wenlei pretrain 的记录 | that guesses other words: the "
            "start of the teacher, or a run of wenlei pretrain",
            rich_help_panel=AUGMENT,
        ),
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(
            min=1, help="每条至多造几条，默认 4 | texts made of each at most, 4 by default", rich_help_panel=AUGMENT
        ),
    ] = None,
    layer_map: Annotated[
        str | None,
        typer.Option(
            help="学生各层跟随教师的哪一层，如 3,6,9,12；默认均匀 | which teacher layer each layer follows; evenly "
            "spread by default",
            rich_help_panel=STUDENT,
        ),
    ] = None,
    layers: Annotated[
        bool,
        typer.Option(
            help="先学教师的各层，再学回答 | whether it learns from layers before answers", rich_help_panel=STUDENT
        ),
    ] = True,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="学生只从标签学，用来看蒸馏值多少 | from labels alone, to see what distillation is worth",
            rich_help_panel=STUDENT,
        ),
    ] = False,
    random: Annotated[
        bool,
        typer.Option(
            "--random",
            help="学生从随机权重开始，而不是从教师 | random weights at first, in place of the teacher's",
            rich_help_panel=STUDENT,
        ),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune-vocabulary/--whole-vocabulary",
            help="去掉文本中没有的文字（如西里尔字母）的词元 | without the tokens of scripts that the texts don't have",
            rich_help_panel=STUDENT,
        ),
    ] = True,
    max_length: Annotated[
        int, typer.Option(min=8, help="词元数上限 | tokens a text is cut to", rich_help_panel=STUDENT)
    ] = 128,
    dropout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            help="丢弃率，默认 0，--control 为 0.1 | dropout of hidden states; 0 by default, 0.1 of a control",
            rich_help_panel=STUDENT,
        ),
    ] = None,
    general_epochs: Annotated[
        int,
        typer.Option(
            min=0,
            help="在无标签文本上学各层；0 为略去 | by layers, on the pool; 0 leaves it out",
            rich_help_panel=STAGES,
        ),
    ] = 1,
    layer_epochs: Annotated[
        int,
        typer.Option(
            min=0, help="在训练样本上学各层；0 为略去 | by layers, on train; 0 leaves it out", rich_help_panel=STAGES
        ),
    ] = 2,
    epochs: Annotated[
        int, typer.Option(min=1, help="学回答 | by answers, on train and pool", rich_help_panel=STAGES)
    ] = 3,
    layer_learning_rate: Annotated[
        float, typer.Option(min=0, help="学各层时 | of the stages by layers", rich_help_panel=STAGES)
    ] = 1e-3,
    learning_rate: Annotated[
        float, typer.Option(min=0, help="学回答时 | of the stage by answers", rich_help_panel=STAGES)
    ] = 3e-4,
    batch_size: Annotated[int, typer.Option(min=1, help="每步的文本数 | texts a step", rich_help_panel=STAGES)] = 32,
    temperature: Annotated[
        float, typer.Option(min=0.1, help="回答的温度 | of the answers", rich_help_panel=STAGES)
    ] = 1.0,
    precision: Annotated[
        str, typer.Option(help="auto、fp32、bf16 或 fp16 | auto, fp32, bf16 or fp16", rich_help_panel=STAGES)
    ] = "auto",
    limit: LimitOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """蒸馏：小模型向训练好的大模型学；中断后用同样的命令继续。| Distil a classifier; the same command resumes.

    先学教师的各层，再学它的回答。By its layers first, then by its answers; what comes out is a run like any other.

    例 Example:  wenlei distill --teacher var/runs/my-bert --student tiny4-312 --snapshot var/snapshots/default/HASH

    例 Example:  wenlei distill --teacher var/runs/my-bert --student rbt3 --snapshot var/snapshots/default/HASH
    --unlabelled 更多文本.txt
    """
    start_torch()
    from training.device import NumberFormat
    from training.distillation.augmentation import Augment
    from training.distillation.lesson import DistillOptions
    from training.distillation.recipe import DistillRecipe
    from training.loop import Options
    from training.recipe import train

    opened = open_snapshot(snapshot)
    number_format = choice(NumberFormat, precision, "--precision")

    def stage(epochs: int, rate: float) -> Options:
        return Options(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=rate,
            head_learning_rate=max(rate, HEAD_LEARNING_RATE),
            patience=2 * epochs,
            precision=number_format,
        )

    options = DistillOptions(
        student=student,
        init=init,
        layer_map=layer_map,
        unlabelled=tuple(unlabelled or ()),
        control=control,
        layers=layers,
        random=random,
        prune=prune,
        augment=choice(Augment, augment, "--augment"),
        masked_lm=masked_lm,
        copies=copies,
        max_length=max_length,
        dropout=(LABELS_DROPOUT if control else 0.0) if dropout is None else dropout,
        temperature=temperature,
        limit=limit,
        general=stage(general_epochs, layer_learning_rate) if general_epochs else None,
        by_layers=stage(layer_epochs, layer_learning_rate) if layer_epochs else None,
        by_answers=stage(epochs, learning_rate),
    )
    recipe = DistillRecipe.resolve(opened, teacher, options, seed=seed, home=home)
    out = out or home / "runs" / f"{Path(student or init or '').stem}-of-{teacher[0].name}-{opened.hash[:8]}-seed{seed}"
    run = train(opened, recipe, out=out)
    emit(
        {"run": str(run.path), "metrics": run.metrics},
        as_json=json,
        render=lambda console: show_run(console, run.metrics, run.path),
    )
