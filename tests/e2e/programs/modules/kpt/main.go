// The part of kpt that runs functions: `kpt fn render`, `kpt fn eval`. The whole of it asks for a module, of its alpha
// commands, that cannot be had by itself; a module without content stands in its place.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kptdev/kpt/commands/fn"
	"github.com/kptdev/kpt/pkg/printer"
	"github.com/spf13/cobra"
)

func main() {
	ctx := printer.WithContext(context.Background(), printer.New(os.Stdout, os.Stderr))
	kpt := &cobra.Command{Use: "kpt", SilenceUsage: true, SilenceErrors: true}
	kpt.AddCommand(fn.GetCommand(ctx, "kpt"))
	if err := kpt.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
