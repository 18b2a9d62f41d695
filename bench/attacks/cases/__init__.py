"""The attacks, by what they aim at. Importing this package registers them, in the order of the table."""

import importlib

MODULES = "names denied changes project_files skills approvals canaries decisions hidden_text secret_values processes network access bombs"

for module in MODULES.split():
    importlib.import_module(f"cases.{module}")
