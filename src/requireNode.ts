import { describeOldNode } from './nodeVersion.ts'

// Imported first by the entry points for Node: an old version otherwise fails with a missing function somewhere else.
const problem = describeOldNode(process.versions.node)
if (problem !== undefined) throw new Error(problem)
