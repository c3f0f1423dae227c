"""From a rules file to `Rules`, or to every problem in the file with its place and its cure."""
