import { json, type Operation } from './operation.ts'

/** Operations for whoever runs the server. */
export const operatorOperations = {
  getOptimizerStatus: {
    tag: 'Operator',
    summary: 'What the optimizer has done, for one session, one tenant or all',
    takes: ['about'],
    answers: { '200': json('The status.', 'OptimizerStatus') },
  },
  getHealth: {
    tag: 'Operator',
    summary: 'That the server is alive, and how it is doing',
    isOpen: true,
    answers: { '200': json('It is alive.', 'Health') },
  },
  getReadiness: {
    tag: 'Operator',
    summary: 'Whether requests would be answered',
    isOpen: true,
    answers: {
      '200': json('They would.', 'Readiness'),
      '503': json('They would not; `degraded` tells why.', 'Readiness'),
    },
  },
  getMetrics: {
    tag: 'Operator',
    summary: 'What the server has done, as Prometheus reads it',
    answers: { '200': { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } } },
  },
  getOpenApi: {
    tag: 'Operator',
    summary: 'This document',
    answers: { '200': json('The document.', { type: 'object' }) },
  },
} satisfies Record<string, Operation>
