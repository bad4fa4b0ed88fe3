// Preloaded into every measured process: reports its CPU time to the parent on request.
process.on('message', (message) => {
  if (message === 'cpu') process.send?.({ cpu: process.cpuUsage() })
})
process.on('disconnect', () => process.exit())
