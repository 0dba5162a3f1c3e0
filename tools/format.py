#!/usr/bin/env python3
"""Formats every C++ source in place."""

import subprocess
import sys

import sources

if __name__ == "__main__":
    sys.exit(subprocess.run(["clang-format-19", "-i", *sources.all_sources()], check=False).returncode)
