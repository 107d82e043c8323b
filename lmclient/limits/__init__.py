"""The state behind the rate limits: what a call takes of them, in memory or on Redis.

The package `limits` counts hits in memory and on Redis, but can neither take several limits
together or none, nor give back or correct what was taken; this one does just that.
"""
