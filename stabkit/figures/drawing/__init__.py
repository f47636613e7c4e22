"""What pictures are drawn with: colours, texts, curves, marks, and the SVG that a page holds."""
