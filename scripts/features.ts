// Generates FEATURES.md from the requirement tables and the tests that cite them.
import { writeFileSync } from 'node:fs'
import { citations } from '../test/requirements/citations.ts'
import { featuresPage } from '../test/requirements/features.ts'

writeFileSync(new URL('../FEATURES.md', import.meta.url), featuresPage(citations()))
