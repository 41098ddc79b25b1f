export default { serverExternalPackages: ['prom-client'] }; // keeps one registry of metrics
