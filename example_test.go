package belfry_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belfryhq/belfry"
	"github.com/belfryhq/belfry/store/memstore"
)

// A kind is defined once, as a value; who schedules and who handles share it.
var sendEmail = belfry.Define[email]("email.send", belfry.MaxAttempts(5))

type email struct{ To, Subject string }

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	s := memstore.New()
	client := belfry.New(s, belfry.Settings{})
	defer client.Close()

	mux := belfry.NewMux()
	sendEmail.Handle(mux, func(_ context.Context, d belfry.Delivery, m email) error {
		fmt.Printf("attempt %d: %q to %s\n", d.Attempt, m.Subject, m.To)
		stop()
		return nil
	})
	worker, err := belfry.NewWorker(client, belfry.WorkerSettings{Mux: mux})
	if err != nil {
		panic(err)
	}
	if _, err := sendEmail.Schedule(ctx, client, email{"ann@example.com", "Hello"}, belfry.In(50*time.Millisecond)); err != nil {
		panic(err)
	}
	if err := worker.Run(ctx); err != nil {
		panic(err)
	}
	// Output: attempt 1: "Hello" to ann@example.com
}

func ExampleClient_Cancel() {
	ctx := context.Background()
	client := belfry.New(memstore.New(), belfry.Settings{})
	defer client.Close()
	m, err := client.Schedule(ctx, "reminder", nil, belfry.In(time.Hour))
	if err != nil {
		panic(err)
	}
	m, err = client.Cancel(ctx, m.Queue, m.ID)
	fmt.Println(m.State, err)
	// Output: canceled <nil>
}

func ExampleAfterGroup() {
	ctx := context.Background()
	client := belfry.New(memstore.New(), belfry.Settings{})
	defer client.Close()
	for i := range 3 {
		if _, err := client.Schedule(ctx, "resize", i, belfry.Group("album-7")); err != nil {
			panic(err)
		}
	}
	m, err := client.Schedule(ctx, "publish", "album-7", belfry.AfterGroup("album-7"))
	if err != nil {
		panic(err)
	}
	m, err = client.Get(ctx, m.Queue, m.ID)
	fmt.Println(m.State, "until", m.Waits, "messages are finished", err)
	// Output: scheduled until 3 messages are finished <nil>
}
