"""`wenlei train`: fit a classifier to a snapshot."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

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
    refuse_given,
    show_run,
    start_torch,
)
from training.cli.recipe_file import read_recipe

if TYPE_CHECKING:
    from training.kinds import Kind
    from training.recipe import Recipe

# Panels of options, and the architectures that have a use for them
NETWORKS = "用于神经网络，即 linear 以外 | for networks: all but --arch linear"
RECIPES = "训练技巧，用于神经网络 | recipes, for networks"
STARTED = "用于有预训练起点的：bert、nezha、gpt、elmo | for what begins with a start: bert, nezha, gpt, elmo"
POOLED = "用于 bert、nezha、elmo | for --arch bert, nezha and elmo"
GPT = "用于 gpt | for --arch gpt"


class Arch(StrEnum):
    """What can be trained."""

    LINEAR = "linear"
    BERT = "bert"
    NEZHA = "nezha"
    GPT = "gpt"
    ELMO = "elmo"
    FASTTEXT = "fasttext"
    TEXTCNN = "textcnn"
    BILSTM = "bilstm"


MEANINGFUL = {
    Arch.LINEAR: (),
    Arch.BERT: (NETWORKS, RECIPES, STARTED, POOLED),
    Arch.NEZHA: (NETWORKS, RECIPES, STARTED, POOLED),
    Arch.GPT: (NETWORKS, RECIPES, STARTED, GPT),
    Arch.ELMO: (NETWORKS, RECIPES, STARTED, POOLED),
    Arch.FASTTEXT: (NETWORKS, RECIPES),
    Arch.TEXTCNN: (NETWORKS, RECIPES),
    Arch.BILSTM: (NETWORKS, RECIPES),
}
LIGHT = (Arch.FASTTEXT, Arch.TEXTCNN, Arch.BILSTM)


class Usual(NamedTuple):
    """What is taken where the command does not say."""

    epochs: int
    learning_rate: float
    dropout: float


PRETRAINED, FROM_NOTHING = Usual(2, 5e-5, 0.1), Usual(12, 2e-3, 0.3)


def train(
    context: typer.Context,
    snapshot: SnapshotOption,
    arch: Annotated[Arch, typer.Option(help="模型架构 | architecture")] = Arch.BERT,
    init: Annotated[
        str,
        typer.Option(
            help="预训练起点：offline（BERT）、hub 上的模型名、文件夹或 wenlei pretrain 的记录 | "
            "start: offline (a BERT), a hub id, a folder, or a run of wenlei pretrain",
            rich_help_panel=STARTED,
        ),
    ] = "offline",
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="训练轮数，默认 2，轻量网络 12 | passes over the train split; 2 by default, 12 of light networks",
            rich_help_panel=NETWORKS,
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="每步的文本数 | texts a step", rich_help_panel=NETWORKS)] = 32,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="学习率，默认 5e-5（编码器），轻量网络 2e-3 | of the encoder, 5e-5 by default; of light networks 2e-3",
            rich_help_panel=NETWORKS,
        ),
    ] = None,
    head_learning_rate: Annotated[
        float, typer.Option(min=0, help="分类层的学习率 | of the layers on top", rich_help_panel=STARTED)
    ] = 5e-4,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="只训练分类层 | train the head alone", rich_help_panel=STARTED)
    ] = False,
    from_scratch: Annotated[
        bool,
        typer.Option(
            "--from-scratch",
            help="不用预训练的权重，随机开始 | random weights in place of the pretrained ones, to compare with",
            rich_help_panel=STARTED,
        ),
    ] = False,
    max_length: Annotated[
        int, typer.Option(min=8, help="词元数上限 | tokens a text is cut to", rich_help_panel=NETWORKS)
    ] = 128,
    dropout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            help="丢弃率，默认 0.1，轻量网络 0.3 | dropout of hidden states; 0.1 by default, 0.3 of light networks",
            rich_help_panel=NETWORKS,
        ),
    ] = None,
    smoothing: Annotated[
        float, typer.Option(min=0, max=0.5, help="标签平滑 | label smoothing", rich_help_panel=RECIPES)
    ] = 0.0,
    focal: Annotated[
        float,
        typer.Option(min=0, max=10, help="focal loss 的 γ：已会的少学 | γ of the focal loss", rich_help_panel=RECIPES),
    ] = 0.0,
    class_weights: Annotated[
        bool,
        typer.Option("--class-weights", help="少见的类别更重 | rare classes count more", rich_help_panel=RECIPES),
    ] = False,
    r_drop: Annotated[
        float,
        typer.Option(min=0, help="R-Drop 的 α：两次 dropout 的回答应当一致 | α of R-Drop", rich_help_panel=RECIPES),
    ] = 0.0,
    adversarial: Annotated[
        float,
        typer.Option(min=0, help="FGM 的 ε：扰动词向量再学一遍 | ε of FGM, on word vectors", rich_help_panel=RECIPES),
    ] = 0.0,
    average: Annotated[
        float,
        typer.Option(
            min=0, max=0.99999, help="权重的滑动平均（EMA），如 0.999 | of weights, 0.999 say", rich_help_panel=RECIPES
        ),
    ] = 0.0,
    layer_decay: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=1,
            help="每往下一层学习率乘以它，如 0.9 | by how much each lower layer learns slower",
            rich_help_panel=RECIPES,
        ),
    ] = 1.0,
    unfreeze: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="逐层解冻：上层先学，到这个比例的步数时全部在学 | gradual unfreezing, over this share of the steps",
            rich_help_panel=RECIPES,
        ),
    ] = 0.0,
    recipe_file: Annotated[
        Path | None,
        typer.Option(
            "--recipe",
            metavar="FILE",
            is_eager=True,
            callback=read_recipe,
            help="TOML 文件，键同选项名；命令行上给的优先 | options from a TOML file; the command line comes first",
            rich_help_panel=RECIPES,
        ),
    ] = None,
    patience: Annotated[
        int,
        typer.Option(
            min=1, help="多少次评估没有进步就停 | evaluations without gain before it stops", rich_help_panel=NETWORKS
        ),
    ] = 2,
    precision: Annotated[
        str, typer.Option(help="auto、fp32、bf16 或 fp16 | auto, fp32, bf16 or fp16", rich_help_panel=NETWORKS)
    ] = "auto",
    pooling: Annotated[
        str,
        typer.Option(
            help="词元合成一个向量：mean；bert、nezha 另有 cls、layers（各层加权）、bilstm；elmo 另有 max | "
            "one vector of all tokens: mean; for bert and nezha also cls, layers, bilstm; for elmo also max",
            rich_help_panel=POOLED,
        ),
    ] = "mean",
    lm_weight: Annotated[
        float, typer.Option(min=0, help="联合目标中语言模型的权重 λ | of the language model", rich_help_panel=GPT)
    ] = 0.5,
    similarity: Annotated[
        bool,
        typer.Option("--similarity", help="文本对不分先后 | the texts of a pair have no order", rich_help_panel=GPT),
    ] = False,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="分几折训练：每条训练样本由没见过它的模型来判断；不留模型 | "
            "train by folds: each train sample is judged by a model that has not seen it; no model is kept",
        ),
    ] = None,
    limit: LimitOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """在快照上训练一个分类器；中断后用同样的命令继续。| Train a classifier on a snapshot; the same command resumes.

    例 Example:  wenlei train --snapshot var/snapshots/default/HASH --arch bert --epochs 2

    例 Example:  wenlei train --snapshot var/snapshots/default/HASH --arch gpt --init var/runs/my-gpt

    例 Example:  wenlei train --snapshot var/snapshots/default/HASH --arch linear --folds 5
    """
    del recipe_file  # its options have become those of the command
    for panel in (NETWORKS, RECIPES, STARTED, POOLED, GPT):
        if panel not in MEANINGFUL[arch]:
            refuse_given(context, panel, f"--arch {arch}")
    start_torch()
    opened = open_snapshot(snapshot)
    out = out or home / "runs" / default_name(arch, init, opened.hash, folds=folds, seed=seed)
    recipe: Recipe
    if arch is Arch.LINEAR:
        from training.baselines import LinearOptions, LinearRecipe

        recipe = LinearRecipe(taxonomy=opened.taxonomy, options=LinearOptions(limit=limit), seed=seed)
    else:
        from training.device import NumberFormat
        from training.finetune import FinetuneOptions, FinetuneRecipe
        from training.light import LightOptions, LightRecipe
        from training.loop import Options

        usual = FROM_NOTHING if arch in LIGHT else PRETRAINED
        rate = usual.learning_rate if learning_rate is None else learning_rate
        loop = Options(
            epochs=epochs or usual.epochs,
            batch_size=batch_size,
            learning_rate=rate,
            head_learning_rate=rate if arch in LIGHT else head_learning_rate,
            smoothing=smoothing,
            focal=focal,
            class_weights=class_weights,
            r_drop=r_drop,
            adversarial=adversarial,
            average=average,
            layer_decay=layer_decay,
            unfreeze=unfreeze,
            patience=patience,
            precision=choice(NumberFormat, precision, "--precision"),
        )
        dropped = usual.dropout if dropout is None else dropout
        if arch in LIGHT:
            light = LightOptions(dropout=dropped, max_length=max_length, limit=limit, loop=loop)
            recipe = LightRecipe(taxonomy=opened.taxonomy, arch=arch.value, options=light, seed=seed)
        else:
            options = FinetuneOptions(
                init=init,
                freeze=freeze,
                from_scratch=from_scratch,
                dropout=dropped,
                max_length=max_length,
                limit=limit,
                loop=loop,
            )
            kind = make_kind(arch, pooling=pooling, lm_weight=lm_weight, similarity=similarity)
            recipe = FinetuneRecipe.resolve(opened.taxonomy, kind, options, seed=seed, cache=home / "pretrained")
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
        render=lambda console: show_run(console, shown, run.path),
    )


def default_name(arch: Arch, init: str, snapshot_hash: str, *, folds: int | None, seed: int) -> str:
    """The run's folder where none is given; another start than the default is in it."""
    started = "" if init == "offline" else f"-{Path(init).name}"
    by_folds = f"-folds{folds}" if folds else ""
    return f"{arch}{started}-{snapshot_hash[:8]}{by_folds}-seed{seed}"


def make_kind(arch: Arch, *, pooling: str, lm_weight: float, similarity: bool) -> "Kind":
    """The architecture, with the options that are its own."""
    from model.architectures.bert import Pooling
    from model.architectures.elmo_classifier import ElmoPooling
    from training.kinds import BertKind, ElmoKind, GptKind

    if arch is Arch.GPT:
        return GptKind(lm_weight=lm_weight, similarity=similarity)
    if arch is Arch.ELMO:
        return ElmoKind(pooling=choice(ElmoPooling, pooling, "--pooling"))
    return BertKind(arch=arch.value, pooling=choice(Pooling, pooling, "--pooling"))
