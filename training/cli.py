"""The commands of training: `wenlei train`, `wenlei evaluate`, `wenlei export`.

Importing this module is cheap: torch is imported when a command runs, so that `wenlei --help` stays quick and works
where the training extra is not installed.
"""

import os
from enum import StrEnum
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from model.console import JsonFlag, emit
from model.errors import BadInput, MissingExtra
from model.snapshot import open_snapshot
from model.types import Split

if TYPE_CHECKING:
    from training.recipe import Recipe

app = typer.Typer(no_args_is_help=True)
BERT = "只用于 --arch bert | for --arch bert only"  # panel of the options that the linear baseline has no use for

HomeOption = Annotated[
    Path, typer.Option(envvar="WENLEI_HOME", help="状态所在的文件夹 | the folder that holds all state")
]
SnapshotOption = Annotated[Path, typer.Option(help="快照文件夹 | folder of the snapshot")]


class Arch(StrEnum):
    """What can be trained."""

    LINEAR = "linear"
    BERT = "bert"


@app.command()
def train(
    context: typer.Context,
    snapshot: SnapshotOption,
    arch: Annotated[Arch, typer.Option(help="模型架构 | architecture")] = Arch.BERT,
    init: Annotated[
        str,
        typer.Option(
            help="预训练起点：offline、hub 上的模型名或文件夹 | start: offline, a hub id or a folder",
            rich_help_panel=BERT,
        ),
    ] = "offline",
    epochs: Annotated[
        int, typer.Option(min=1, help="训练轮数 | passes over the train split", rich_help_panel=BERT)
    ] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="每步的文本数 | texts a step", rich_help_panel=BERT)] = 32,
    learning_rate: Annotated[
        float, typer.Option(min=0, help="编码器的学习率 | of the encoder", rich_help_panel=BERT)
    ] = 5e-5,
    head_learning_rate: Annotated[
        float, typer.Option(min=0, help="分类层的学习率 | of the layers on top", rich_help_panel=BERT)
    ] = 5e-4,
    pooling: Annotated[
        str, typer.Option(help="cls、mean 或 layers（各层加权）| cls, mean or layers", rich_help_panel=BERT)
    ] = "mean",
    freeze: Annotated[
        bool, typer.Option("--freeze", help="只训练分类层 | train the head alone", rich_help_panel=BERT)
    ] = False,
    max_length: Annotated[
        int, typer.Option(min=8, help="词元数上限 | tokens a text is cut to", rich_help_panel=BERT)
    ] = 128,
    dropout: Annotated[
        float, typer.Option(min=0, max=0.9, help="丢弃率 | dropout of hidden states", rich_help_panel=BERT)
    ] = 0.1,
    smoothing: Annotated[
        float, typer.Option(min=0, max=0.5, help="标签平滑 | label smoothing", rich_help_panel=BERT)
    ] = 0.0,
    patience: Annotated[
        int,
        typer.Option(
            min=1, help="多少次评估没有进步就停 | evaluations without gain before it stops", rich_help_panel=BERT
        ),
    ] = 2,
    precision: Annotated[
        str, typer.Option(help="auto、fp32、bf16 或 fp16 | auto, fp32, bf16 or fp16", rich_help_panel=BERT)
    ] = "auto",
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="分几折训练：每条训练样本由没见过它的模型来判断；不留模型 | "
            "train by folds: each train sample is judged by a model that has not seen it; no model is kept",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="最多用多少条训练样本 | train samples at most")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="随机种子 | seed of all randomness")] = 0,
    out: Annotated[Path | None, typer.Option(help="训练记录文件夹 | folder of the run")] = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """在快照上训练一个分类器；中断后用同样的命令继续。| Train a classifier on a snapshot; the same command resumes.

    例 Example:  wenlei train --snapshot var/snapshots/default/HASH --arch bert --epochs 2

    例 Example:  wenlei train --snapshot var/snapshots/default/HASH --arch linear --folds 5
    """
    if arch is Arch.LINEAR:
        _refuse_given(context, BERT, "--arch linear")
    _start_torch()
    opened = open_snapshot(snapshot)
    by_folds = f"-folds{folds}" if folds else ""
    out = out or home / "runs" / f"{arch}-{opened.hash[:8]}{by_folds}-seed{seed}"
    recipe: Recipe
    if arch is Arch.LINEAR:
        from training.baselines import LinearOptions, LinearRecipe

        recipe = LinearRecipe(taxonomy=opened.taxonomy, options=LinearOptions(limit=limit), seed=seed)
    else:
        from model.architectures.bert import Pooling
        from training.device import NumberFormat
        from training.finetune import BertOptions, BertRecipe
        from training.loop import Options

        loop = Options(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            head_learning_rate=head_learning_rate,
            smoothing=smoothing,
            patience=patience,
            precision=_choice(NumberFormat, precision, "--precision"),
        )
        options = BertOptions(
            init=init,
            pooling=_choice(Pooling, pooling, "--pooling"),
            freeze=freeze,
            dropout=dropout,
            max_length=max_length,
            limit=limit,
            loop=loop,
        )
        recipe = BertRecipe.resolve(opened.taxonomy, options, seed=seed, cache=home / "pretrained")
    if folds:
        from training.crossfit import train_by_folds

        run = train_by_folds(opened, recipe, n_folds=folds, out=out)
    else:
        from training.recipe import train as train_once

        run = train_once(opened, recipe, out=out)
    shown = {"train（折外 out of fold）" if split == "train" else split: each for split, each in run.metrics.items()}
    emit(
        {"run": str(run.path), "metrics": run.metrics},
        as_json=json,
        render=lambda console: _show_run(console, shown, run.path),
    )


@app.command()
def evaluate(
    path: Annotated[Path, typer.Argument(metavar="RUN|BUNDLE", help="训练记录或模型包 | a run or a bundle")],
    snapshot: SnapshotOption,
    split: Annotated[Split, typer.Option(help="在哪个划分上评估 | which split")] = Split.TEST,
    precision: Annotated[str | None, typer.Option(help="模型包的精度，如 fp32、int8 | of a bundle: fp32, int8")] = None,
    json: JsonFlag = False,
) -> None:
    """在快照的一个划分上评估训练记录或模型包。| Evaluate a run or a bundle on one split of a snapshot."""
    _start_torch()
    from training.evaluate import evaluate_path

    metrics = evaluate_path(path, open_snapshot(snapshot), split, precision=precision)
    emit(metrics, as_json=json, render=lambda console: _show(console, {split.value: metrics}))


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="已完成的训练记录 | a finished run")],
    out: Annotated[Path, typer.Option(help="模型包文件夹 | folder of the bundle")],
    precision: Annotated[
        str | None, typer.Option(help="逗号分隔，如 fp32,int8；默认全部 | comma-separated; all by default")
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="训练所用快照，若已搬走 | the run's snapshot, if it has been moved")
    ] = None,
    name: Annotated[str | None, typer.Option(help="模型名，默认同文件夹名 | name of the model")] = None,
    abstain_below: Annotated[
        float, typer.Option(min=0, max=1, help="最高分低于此值则拒识 | abstain when the best score is below")
    ] = 0.0,
    json: JsonFlag = False,
) -> None:
    """把训练记录导出为 ONNX 模型包；与训练结果不一致则拒绝。| Export a run as an ONNX bundle, through a parity gate."""
    _start_torch()
    from model.run import open_run
    from training.export import export_run

    bundle = export_run(
        open_run(run),
        out=out,
        precisions=[part.strip() for part in precision.split(",") if part.strip()] if precision else None,
        snapshot=open_snapshot(snapshot) if snapshot else None,
        name=name,
        abstain_below=abstain_below,
    )
    result = {"bundle": str(bundle.path), "version": bundle.version, "parity": bundle.manifest.parity}
    emit(result, as_json=json)


def _start_torch() -> None:
    if missing := [name for name in ("torch", "transformers", "sklearn", "onnx") if util.find_spec(name) is None]:
        raise MissingExtra(f"training needs {', '.join(missing)}: pip install 'wenlei[train,cpu]'")
    # Threads that spin while they wait slow everything tenfold where other programs use the same cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging

    hub_logging.set_verbosity_error()  # it would tell of every try to reach the hub; what comes of it is told below
    logging.set_verbosity_error()  # it would advise on what is done on purpose here
    logging.disable_progress_bar()


def _refuse_given(context: typer.Context, panel: str, place: str) -> None:
    """Refuse options of `panel` that were given on the command line, since nothing would come of them."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if getattr(option, "rich_help_panel", None) == panel and source and source.name == "COMMANDLINE":
            raise BadInput(f"{option.opts[0]} has no meaning with {place}; leave it out")


def _choice(kind: type[Any], value: str, option: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise BadInput(f"{option} {value}: choose one of {', '.join(member.value for member in kind)}") from None


def _show_run(console: Console, metrics: dict[str, Any], path: Path) -> None:
    """The figures, then where the run lies, which the next command asks for."""
    _show(console, metrics)
    console.print(f"训练记录 run  {path}", soft_wrap=True, markup=False, highlight=False)


def _show(console: Console, metrics: dict[str, Any]) -> None:
    table = Table("划分 split", "样本 samples", "准确率 accuracy", "宏平均 F1 macro-F1", "micro-F1", "ECE")
    for split, figures in metrics.items():
        intervals = [
            f"{figures[name]:.4f} [{figures[f'{name}_ci'][0]:.4f}, {figures[f'{name}_ci'][1]:.4f}]"
            for name in ("accuracy", "macro_f1")
        ]
        table.add_row(split, str(figures["n"]), *intervals, f"{figures['micro_f1']:.4f}", f"{figures['ece']:.4f}")
    console.print(table)
