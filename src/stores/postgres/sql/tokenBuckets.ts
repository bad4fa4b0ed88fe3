import { createUnloggedTable, type MigrationStep } from '../migrate.ts'

/** `full_at` is the time in milliseconds at which a bucket is full again. */
const columns = 'name bytea PRIMARY KEY, full_at float8 NOT NULL'

export const createTokenBuckets: MigrationStep = (schema) => createUnloggedTable(schema, 'token_bucket', columns)

export const tokenBucketFunctions = `
-- Takes a token from a bucket of p_per_minute tokens. Returns 0, or the milliseconds until there is one.
CREATE OR REPLACE FUNCTION tk.take_token(p_bucket text, p_per_minute float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  minute CONSTANT float8 := 60000;
  token_time float8 := minute / p_per_minute;
  now_ms float8 := extract(epoch FROM clock_timestamp()) * 1000;
  wait float8;
BEGIN
  PERFORM tk.enter('*');
  -- The row stays locked if there is no token. A bucket of the far future is from before the clock was set back.
  INSERT INTO tk.token_bucket AS b VALUES (tk.digest(p_bucket), now_ms + token_time)
    ON CONFLICT (name) DO UPDATE
    SET full_at = CASE WHEN b.full_at BETWEEN now_ms AND now_ms + minute THEN b.full_at ELSE now_ms END + token_time
    WHERE b.full_at + token_time <= now_ms + minute OR b.full_at > now_ms + 2 * minute;
  IF FOUND THEN RETURN '0'; END IF;
  SELECT b.full_at + token_time - now_ms - minute INTO wait
    FROM tk.token_bucket b WHERE b.name = tk.digest(p_bucket);
  RETURN to_json(greatest(wait, 1));
END $$;

-- Deletes full buckets, which are as good as none. Others may be taking a token from one at this moment.
CREATE OR REPLACE FUNCTION tk.drop_full_buckets() RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tk.enter('*');
  DELETE FROM tk.token_bucket WHERE name IN (SELECT name FROM tk.token_bucket
    WHERE full_at <= extract(epoch FROM clock_timestamp()) * 1000 FOR UPDATE SKIP LOCKED);
  RETURN NULL;
END $$;
`
