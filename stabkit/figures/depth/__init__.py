"""What becomes of it with depth: ‖ΔF‖ and the theorems, slopes, scaling laws."""
