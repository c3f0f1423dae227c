"""From a rules file to `Rules`, or to every problem in the file with its location and its cure."""
