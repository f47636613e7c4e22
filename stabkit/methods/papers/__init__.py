"""The twelve methods that DeepNet and Very Deep Transformers compare: one paper a file."""
