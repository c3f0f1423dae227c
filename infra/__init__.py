"""What the rules need in an account: tables, later event filters, roles, alarms and the template."""
