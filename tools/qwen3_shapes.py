"""The shapes of `antisd-bench` that the other scripts need, and transformers' configuration for
them."""
SHAPES = {  # hidden, layers, heads, kv_heads, head_dim, intermediate, vocabulary, tied
    "tiny": (192, 4, 6, 6, 32, 512, 512, True),
    "qwen3-0.6b": (1024, 28, 16, 8, 128, 3072, 151_936, True),
    "qwen3-4b": (2560, 36, 32, 8, 128, 9728, 151_936, True),
    "qwen3-8b": (4096, 36, 32, 8, 128, 12_288, 151_936, False),
}


def qwen3_config(shape, **more):
    from transformers import Qwen3Config
    hidden, layers, heads, kv_heads, head_dim, intermediate, vocabulary, tied = shape
    settings = dict(vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
                    num_key_value_heads=kv_heads, head_dim=head_dim, intermediate_size=intermediate,
                    tie_word_embeddings=tied, max_position_embeddings=40_960)
    return Qwen3Config(**(settings | more))
