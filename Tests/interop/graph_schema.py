#!/usr/bin/env python3
"""Checks graph files against the JSON Schema of graph files, with a validator that is not ours.

Usage: graph_schema.py SCHEMA FILE... Prints `FILE: fits` or `FILE: PATH: why not`, one line each.
"""
import json
import sys

import jsonschema
import yaml


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            document = yaml.safe_load(file)
        error = jsonschema.exceptions.best_match(validator.iter_errors(document))
        if error is None:
            print(f"{name}: fits")
        else:
            message = error.message.replace("\n", " ")[:200]
            print(f"{name}: {error.json_path}: {message}")


if __name__ == "__main__":
    main()
