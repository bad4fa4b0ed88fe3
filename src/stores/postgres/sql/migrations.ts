import type { MigrationStep } from '../migrate.ts'
import { auxiliaryFunctions } from './auxiliaryFunctions.ts'
import { createGraphTables, graphFunctions } from './graph.ts'
import { readFunctions } from './readFunctions.ts'
import { inSchema, sharedFunctions } from './shared.ts'
import { createTables } from './tables.ts'
import { createTokenBuckets, tokenBucketFunctions } from './tokenBuckets.ts'
import { writeFunctions } from './writeFunctions.ts'

/** Functions may change within a release as long as clients of the release before can call them. */
const functions = [sharedFunctions, readFunctions, writeFunctions, auxiliaryFunctions, graphFunctions].join('\n')

/** Functions that other components replace; a later migration of the store must not create them again. */
const hooks = `
-- Replaced if pgvector is installed. NULL: the caller compares all vectors itself.
CREATE FUNCTION tk.find_nearest(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN NULL;
END $$;
`

/** Migrations of the store from an empty schema to the newest version. */
export const storeMigrations: readonly MigrationStep[] = [
  (schema) => createTables(schema) + createGraphTables(schema) + inSchema(functions + hooks)(schema),
  (schema) => createTokenBuckets(schema) + inSchema(tokenBucketFunctions)(schema),
]
