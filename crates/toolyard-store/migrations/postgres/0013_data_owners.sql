-- Results, past requests and shapes of results belong to a caller. The owner is empty for callers that are not told apart, whose
-- were all rows so far.

ALTER TABLE results ADD COLUMN owner TEXT NOT NULL DEFAULT '';

ALTER TABLE past_requests ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE past_requests DROP CONSTRAINT past_requests_pkey;
ALTER TABLE past_requests ADD CONSTRAINT past_requests_of_owner_key PRIMARY KEY (owner, source, tool, request);

ALTER TABLE result_shapes ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE result_shapes DROP CONSTRAINT result_shapes_pkey;
ALTER TABLE result_shapes ADD CONSTRAINT result_shapes_of_owner_key PRIMARY KEY (owner, source, tool);
