import preact from '@preact/preset-vite';
import { defineConfig } from 'vite';

// The compiler's own output is in dist/server and dist/app; the page that browsers load is in dist/page.
export default defineConfig({
  plugins: [preact()],
  base: './',
  build: { outDir: 'dist/page', emptyOutDir: true, target: 'es2022' },
});
