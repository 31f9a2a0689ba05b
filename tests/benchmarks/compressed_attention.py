"""What memory-compressed attention saves on long texts: CPU seconds of a step, forward and back, beside full attention.

    OMP_NUM_THREADS=1 python tests/benchmarks/compressed_attention.py

Decoders of 4 layers of 256 with random weights, 4,096 tokens a batch, medians of interleaved rounds; the vocabulary is
left out. Prints a Markdown table.
"""

import argparse
import statistics
import sys
import time

import torch
from transformers import GPT2Config, OpenAIGPTConfig, PreTrainedModel

from model.architectures.gpt import build_decoder

CONFIGS = {"openai-gpt": OpenAIGPTConfig, "gpt2": GPT2Config}
ATTENTIONS = ("full", "memory-compressed")
BATCH_TOKENS = 4096


def main() -> None:
    """Measure all lengths and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(0)
    sys.stdout.write("| tokens a text | body | full | memory-compressed | ratio |\n|---|---|---|---|---|\n")
    for length in options.lengths:
        for body in CONFIGS:
            decoders = {attention: decoder(body, attention, max(options.lengths)) for attention in ATTENTIONS}
            states = torch.randn(BATCH_TOKENS // length, length, 256)
            seconds: dict[str, list[float]] = {attention: [] for attention in ATTENTIONS}
            for _ in range(options.rounds + 1):  # the first one warms up
                for attention, each in decoders.items():
                    seconds[attention].append(step(each, states))
            full, compressed = (statistics.median(seconds[attention][1:]) for attention in ATTENTIONS)
            ratio = full / compressed
            sys.stdout.write(f"| {length:,} | {body} | {full:.2f} s | {compressed:.2f} s | {ratio:.1f}x |\n")


def decoder(body: str, attention: str, positions: int) -> PreTrainedModel:
    """A decoder in training, without dropout of attention."""
    config = CONFIGS[body](
        vocab_size=100,
        n_positions=positions,
        n_embd=256,
        n_layer=4,
        n_head=4,
        bos_token_id=None,
        eos_token_id=None,
        attn_pdrop=0.0,
        attention=attention,
        block_length=256,
        compression=3,
    )
    return build_decoder(config).train()


def step(network: PreTrainedModel, states: torch.Tensor) -> float:
    """CPU seconds of one forward and backward pass over embedded texts (batch, length, 256)."""
    started = time.process_time()
    network(inputs_embeds=states).last_hidden_state.square().mean().backward()
    return time.process_time() - started


if __name__ == "__main__":
    main()
