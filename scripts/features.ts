// Generates FEATURES.md from the requirement tables and the tests that cite them.
import { writeFileSync } from 'node:fs'
import { findCitations } from '../test/requirements/citations.ts'
import { renderFeatures } from '../test/requirements/features.ts'

writeFileSync(new URL('../FEATURES.md', import.meta.url), renderFeatures(findCitations()))
