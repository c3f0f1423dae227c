"""What the Lambda functions share: rules and clients made once per start, log lines, metrics, deadlines."""
