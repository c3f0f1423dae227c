"""The kinds of rules, a file each: what a target must hold, and which writes make it so."""
