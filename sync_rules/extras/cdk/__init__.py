"""sync-rules in an app of the AWS CDK: a construct whose template and functions follow from a rules file."""
