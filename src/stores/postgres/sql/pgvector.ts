import type { MigrationStep } from '../migrate.ts'
import { inSchema } from './shared.ts'

/**
 * SQL for a database with pgvector, whose types are in the schema `ext`: every vector is stored as its type too, and
 * the database finds the nearest ones of a scope that has many.
 */
const createNearest = `
ALTER TABLE tk.vector ADD COLUMN embedding ext.vector;

-- Reads 32-bit floats in little-endian order; NULL if one of them is not finite.
CREATE FUNCTION tk.to_vector(p_data bytea) RETURNS ext.vector LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN bool_and(n.exponent < 255) THEN
      array_agg(n.sign * (CASE n.exponent WHEN 0 THEN n.fraction ELSE n.fraction + 8388608 END)
        * power(2::float8, greatest(n.exponent, 1) - 150) ORDER BY n.position)::real[]::ext.vector END
  FROM (
    SELECT position, CASE WHEN get_byte(p_data, position + 3) >= 128 THEN -1 ELSE 1 END AS sign,
      (get_byte(p_data, position + 3) % 128) * 2 + get_byte(p_data, position + 2) / 128 AS exponent,
      (get_byte(p_data, position + 2) % 128) * 65536 + get_byte(p_data, position + 1) * 256
        + get_byte(p_data, position) AS fraction
    FROM generate_series(0, length(p_data) - 4, 4) position
  ) n
$$;

-- pgvector takes up to 16,000 dimensions.
CREATE FUNCTION tk.set_embedding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.embedding := CASE WHEN NEW.dimensions BETWEEN 1 AND 16000 THEN tk.to_vector(NEW.data) END;
  RETURN NEW;
END $$;
CREATE TRIGGER vector_embedding BEFORE INSERT OR UPDATE ON tk.vector FOR EACH ROW EXECUTE FUNCTION tk.set_embedding();
UPDATE tk.vector SET stamp = stamp;

-- Nearest vectors with their cosines; NULL if there are few enough for the caller to compare all of them.
CREATE OR REPLACE FUNCTION tk.find_nearest(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  dimensions int := (r->>'dimensions')::int;
  many bigint := (r->>'maxExact')::bigint;
  wanted bigint := (r->>'limit')::bigint;
  nearest json;
BEGIN
  IF (SELECT count(*) FROM (SELECT 1 FROM tk.vector v WHERE v.scope = p_scope AND v.model = r->>'model'
    LIMIT many + 1) t) <= many THEN RETURN NULL; END IF;
  PERFORM set_config('hnsw.ef_search', least(1000, greatest(100, wanted))::text, true);
  PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);
  EXECUTE format($sql$
    SELECT coalesce(json_agg(json_build_array(t.name, t.id, t.score) ORDER BY t.score DESC), '[]'::json) FROM (
      SELECT s.name, v.id, 1 - (v.embedding::ext.vector(%1$s) OPERATOR(ext.<=>) $2::ext.vector(%1$s)) AS score
      FROM tk.vector v JOIN tk.session s ON s.scope = v.scope AND s.id = v.session
      WHERE v.scope = $1 AND s.scope = $1 AND v.model = %2$L AND v.dimensions = %1$s AND v.embedding IS NOT NULL
        AND CASE WHEN $3::text IS NULL THEN position(':' IN s.name) = 0 OR s.name = ':files' ELSE s.name = $3 END
        AND ($4::jsonb IS NULL OR $4::jsonb @> to_jsonb(v.kind)) AND v.at >= $5 AND v.at <= $6
        AND coalesce(tk.parse_message_id(v.id), 0) < $7
      ORDER BY v.embedding::ext.vector(%1$s) OPERATOR(ext.<=>) $2::ext.vector(%1$s) LIMIT $8) t
    $sql$, dimensions, r->>'model') INTO nearest
    USING p_scope, r->>'values', r->>'name', r->'kinds', (r->>'from')::float8, (r->>'to')::float8,
      (r->>'before')::float8, wanted;
  RETURN nearest;
END $$;
`

/** Migrations of vectors for a database that has pgvector in the given schema. */
export const pgvectorMigrations = (extensionSchema: string): readonly MigrationStep[] => [
  (schema) => inSchema(createNearest.replaceAll(/\bext\./g, `${extensionSchema}.`))(schema),
]
