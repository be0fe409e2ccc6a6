-- Each task is in the list of its status, whatever that is, by the instant at which it was scheduled. A body that can't be
-- read stays as it is.
DROP INDEX record_running;
UPDATE record SET list = status, list_at = json_extract(body, '$.t0') WHERE kind = 0 AND json_valid(body);
