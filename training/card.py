"""The model card: what a bundle is, what it was made from, how good it is, and how to use it (Mitchell 2019)."""

from collections.abc import Iterator
from typing import Any

from model.bundle import Manifest

SHOWN_LABELS = 200  # more make the card a list; all are in bundle.json


def model_card(manifest: Manifest) -> str:
    """The card as Markdown, Chinese first, every figure from the run and its export."""
    return "\n".join(_lines(manifest)) + "\n"


def _lines(manifest: Manifest) -> Iterator[str]:
    taxonomy, run = manifest.taxonomy, manifest.run
    yield f"# {manifest.name}"
    yield ""
    yield (
        f"文类 wenlei 中文文本分类模型包：{manifest.arch} 架构，{len(taxonomy)} 个标签，任务类型 {taxonomy.task}。"
        f"A wenlei bundle for Chinese text classification: {manifest.arch}, {len(taxonomy)} labels, "
        f"task {taxonomy.task}."
    )
    yield ""
    yield "## 效果 Figures"
    yield ""
    yield "| 精度 precision | 划分 split | 样本 samples | 准确率 accuracy | 宏平均 F1 macro-F1 | ECE |"
    yield "|---|---|---|---|---|---|"
    for split, figures in manifest.metrics["trained"].items():
        yield _figures_row("训练框架 trained", split, figures)
    for precision, figures in manifest.metrics.items():
        if precision != "trained":
            yield _figures_row(f"ONNX {precision}", manifest.parity[precision]["split"], figures)
    yield ""
    yield (
        "括号内为 95% 置信区间：对文本重采样 1000 次的自助法百分位区间。"
        "In brackets the 95% interval: percentile bootstrap over texts, 1000 resamples."
    )
    yield ""
    yield "## 导出一致性 Parity"
    yield ""
    for precision, parity in manifest.parity.items():
        yield (
            f"- {precision}: {parity['same_labels']} / {parity['samples']} 条标签一致 same labels; "
            f"logit 最大差 largest difference {parity['max_logit_difference']:.2g}; "
            f"判据 judged by {parity['judged_by']}"
        )
    yield ""
    yield "## 来源 Provenance"
    yield ""
    yield f"- 快照 snapshot: `{manifest.snapshot}`"
    yield f"- 随机种子 seed: {run['seed']}"
    if start := run["config"].get("start"):
        yield f"- 起点 start: {start['name']}, SHA-256 `{start['sha256'][:12]}…`"
    yield f"- 训练样本 train samples: {run['train_samples']:,}"
    yield f"- 训练完成 trained: {run['finished_at']}；导出 exported: {manifest.created_at}"
    yield f"- 环境 environment: {', '.join(f'{name} {version}' for name, version in run['environment'].items())}"
    yield ""
    yield "## 标签 Labels"
    yield ""
    shown = "、".join(taxonomy.labels[:SHOWN_LABELS])
    yield shown if len(taxonomy) <= SHOWN_LABELS else f"{shown} … 全部 {len(taxonomy)} 个见 all of them in bundle.json"
    yield ""
    yield "## 用法与限制 Use and limits"
    yield ""
    yield "```"
    yield "wenlei serve --bundle ."
    yield "wenlei classify --bundle . '一条要分类的文本'"
    yield "```"
    yield ""
    if manifest.max_length:
        yield (
            f"超过 {manifest.max_length} 个词元的文本会被截断（结果中 `truncated` 为真）。"
            f"Texts longer than {manifest.max_length} tokens are cut (`truncated` is true). "
        )
    if "int8" in manifest.onnx:
        yield (
            "int8 按批次动态量化激活值，同一文本的分数会随同批文本略有变化；需要逐位可复现时请用 fp32。"
            "In int8 activations are quantised per batch, so a score depends a little on the batch; fp32 does not."
        )
    yield (
        "效果只对与上述快照同类的文本成立；换了来源、体裁或年代，请先用 `wenlei evaluate` 重新评估。"
        "The figures hold for texts like those of the snapshot; evaluate again on any other kind."
    )


def _figures_row(precision: str, split: str, figures: dict[str, Any]) -> str:
    accuracy, macro_f1 = (
        f"{100 * figures[name]:.2f} ({100 * figures[f'{name}_ci'][0]:.2f}–{100 * figures[f'{name}_ci'][1]:.2f})"
        for name in ("accuracy", "macro_f1")
    )
    return f"| {precision} | {split} | {figures['n']} | {accuracy} | {macro_f1} | {figures['ece']:.3f} |"
