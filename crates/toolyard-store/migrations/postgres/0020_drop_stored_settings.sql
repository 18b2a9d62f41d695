-- Policies and settings are in files only.

DROP TABLE policies;
DROP TABLE settings_versions;
