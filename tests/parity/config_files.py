# SPDX-License-Identifier: Apache-2.0
"""What accelerate makes of config files: `save` writes each again beside it, `show` prints them all as JSON."""

import json
import sys

from accelerate.commands.config.config_args import load_config_from_file

command, *files = sys.argv[1:]
shown = {}
for file in files:
    config = load_config_from_file(file)
    if command == "save":
        config.to_yaml_file(file + ".peer.yaml")
        config.to_json_file(file + ".peer.json")
    else:
        shown[file] = config.to_dict()
print(json.dumps(shown))
