"""Iris Gateway for Hermes: a platform adapter and a hook subscriber in one, over the agent link."""

from .plugin import register

__all__ = ["register"]
