// Loaded before anything else into a process that is measured: tells its parent the CPU time it has taken, whatever it runs.
process.on('message', (message) => {
  if (message === 'cpu') process.send?.({ cpu: process.cpuUsage() })
})
process.on('disconnect', () => process.exit())
