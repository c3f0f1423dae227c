"""Stream handlers of public applications beside rules that replace them, on the same histories."""
