"""The single writer: publications, transactions, and the subscriptions they are matched with."""
